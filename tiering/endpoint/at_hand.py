"""What is said where an answer may not wait, and has to."""


class NotAtHand(Exception):
    """An answer cannot be given at once: a store, a disk or another thread has to be waited for."""
