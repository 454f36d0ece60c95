"""Report parts of the `kernels` experiment: the rungs of a ladder, compared with the roofline and with libraries."""
