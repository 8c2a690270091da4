"""What of the records is decoded, for those who ask for it without decoding anything themselves."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Projection:
    """Which of the optional columns to decode; offset and timestamp are always decoded."""

    key: bool = True
    value: bool = True
    headers: bool = True
    timestamp_type: bool = False


EVERYTHING = Projection()
