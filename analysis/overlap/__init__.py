"""Report parts of the experiment `overlap`: the share of the possible overlap that each strategy reaches."""
