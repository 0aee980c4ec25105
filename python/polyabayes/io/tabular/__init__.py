"""Tables of counts or texts: CSV by the csv module, Parquet by Arrow."""
