"""A log's folder after a crash: segments loaded, recovered, split, and the producers' state rebuilt (Kafka's LogLoader)."""
