"""Results of a sweep of the GPU ring: its peaks compared with other queues, and the effect of each of its axes."""
