"""What jobs share: arguments, estimates, tasks, staging and commit log of what they write."""
