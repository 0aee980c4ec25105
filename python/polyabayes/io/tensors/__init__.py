"""Count tensors: coordinate lists with the names of their modes, and .npz files."""
