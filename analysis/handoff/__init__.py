"""Report parts of the experiment `handoff`: the cheapest way to hand a tensor to another process, by size."""
