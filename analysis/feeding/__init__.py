"""Report parts that only the `feeding` experiment has."""
