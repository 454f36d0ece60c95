"""Feedrate's analysis: reads only result directories; writes reports, comparisons and figures for pages."""
