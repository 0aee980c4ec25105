"""Documents of any kind of input as counts: frames, texts, lists, objects of other packages."""
