"""Deletes objects that no manifest names: plan, collection, records of writes."""
