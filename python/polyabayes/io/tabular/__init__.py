"""Tables of counts or of texts: CSV by a reader of our own, Parquet by Arrow."""
