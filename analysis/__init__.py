"""Feedrate's analysis: reads result directories and nothing else; writes reports, comparisons and README figures."""
