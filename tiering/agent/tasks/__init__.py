"""What the agent does to one partition, or one piece of an archive, in one turn."""
