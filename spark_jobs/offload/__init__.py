"""What the job `offload` is made of."""
