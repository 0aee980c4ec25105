"""Pictures of models and comparisons; every function takes and returns a Matplotlib Axes."""
