"""Count tensors: cells, axes and their levels."""
