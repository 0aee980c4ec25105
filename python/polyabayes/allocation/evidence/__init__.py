"""Evidence of count tensors: its estimates, the bounds they are held against, and the result.

`result` is what a user sees, `estimation` finds it by any method, here or on workers; `bounds`
are for data as they are, `bidirectional` for data drawn from the model.
"""
