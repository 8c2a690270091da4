"""What the job `expire` is made of."""
