"""What the job `backfill` is made of."""
