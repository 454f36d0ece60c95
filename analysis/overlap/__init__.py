"""Report parts of the `overlap` experiment: the share of the possible overlap that each strategy reaches."""
