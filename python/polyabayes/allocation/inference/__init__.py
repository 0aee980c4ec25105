"""The hidden allocation given the counts: posterior means, draws and their summaries."""
