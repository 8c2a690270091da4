"""The jobs, one file each: `python -m spark_jobs.jobs.NAME`."""
