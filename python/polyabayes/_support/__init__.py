"""Internal helpers: checks, files, frames, progress, random states."""
