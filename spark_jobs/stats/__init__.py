"""What a log is made of, counted by partition and hour: sums that merge, however the log is cut."""
