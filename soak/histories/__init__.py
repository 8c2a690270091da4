"""Histories of what clients asked a broker for and were told, and the anomalies in them, after Jepsen's workload for Kafka."""
