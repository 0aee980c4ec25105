"""Graphs of allocation models: parsing, checks and ready-made graphs."""
