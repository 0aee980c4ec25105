"""Who finds the number of topics, or the rank, of corpora and tables of known truth?"""
