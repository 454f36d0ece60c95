"""Parts of the report for the `overlap` experiment: the share of the possible overlap that each strategy reaches."""
