"""All logs of all directories in log.dirs: started, maintained, retained and shut down (Kafka's LogManager)."""
