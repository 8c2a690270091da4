"""What the job `scrub` is made of."""
