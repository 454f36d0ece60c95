"""What the report says of the experiment `overlap`: how much of the possible overlap each strategy reaches."""
