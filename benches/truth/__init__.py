"""Every claim of the package against the truth: simulators, and the page of coverage."""
