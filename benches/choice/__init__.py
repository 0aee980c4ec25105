"""Who finds the number of topics, or the rank: corpora and tables of known truth, and rivals."""
