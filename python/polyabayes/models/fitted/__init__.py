"""What a fitted model holds and stores: topics, vocabulary, covariates."""
