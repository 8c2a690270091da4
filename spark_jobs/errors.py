"""What the data source refuses, for the source, the sink and the jobs."""


class OptionError(ValueError):
    """An option that is unknown, missing or makes no sense; the message names it and says what would do."""
