"""What is written to files and read again: arrays, frames, and folders of states."""
