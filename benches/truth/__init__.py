"""Every claim of the package against the truth: simulators, a table of z, and the page of coverage."""
