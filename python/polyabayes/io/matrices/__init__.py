"""Files of counts by document and word: LDA-C, UCI docword, Matrix Market, svmlight, NumPy."""
