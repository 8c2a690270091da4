"""What appends of many requests share."""
