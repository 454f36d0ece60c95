"""Report parts that only the experiment `feeding` has."""
