"""What several rooms of tests share: models, corpora, the command line, interruptions."""
