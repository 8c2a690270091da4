"""What commands share, whether the CLI, Airflow or a Spark job runs them: output, options, progress."""
