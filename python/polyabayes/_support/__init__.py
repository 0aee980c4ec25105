"""Internal helpers of all rooms: checks, files, frames, progress, random states."""
