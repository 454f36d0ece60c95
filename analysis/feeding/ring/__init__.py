"""What a sweep of the GPU ring says: its peaks beside others', and what each of its axes does."""
