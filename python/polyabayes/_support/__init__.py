"""What every room uses and no user sees: checks, files, frames, progress, random states."""
