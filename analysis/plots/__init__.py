"""Figures of every experiment, and how figures look."""
