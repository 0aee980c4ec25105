"""Internal helpers: checks, files, results and their output, random states."""
