"""What the report says of the experiment `handoff`: the cheapest way to another process, by size."""
