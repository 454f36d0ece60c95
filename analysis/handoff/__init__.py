"""Report parts of the `handoff` experiment: the cheapest way to hand a tensor to another process, by size."""
