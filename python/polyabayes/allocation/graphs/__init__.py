"""Graphs of allocation models: their text, their checks, and those that are ready made."""
