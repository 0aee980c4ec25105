"""Evidence of count tensors.

`result` has the public classes. `estimation` runs the methods, here or on workers. `bounds` checks
estimates against lower bounds. `bidirectional` bounds the evidence of simulated data.
"""
