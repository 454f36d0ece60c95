"""Report parts of the `storage` experiment: engines that move bytes between files and device memory."""
