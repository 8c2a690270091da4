"""The constants of batches and records: codecs, timestamp types, Kafka's values for "none"."""

from enum import IntEnum


class Codec(IntEnum):
    """The codec in bits 0 to 2 of a batch's attributes, by the names of Kafka's `compression.type`."""

    none = 0
    gzip = 1
    snappy = 2
    lz4 = 3
    zstd = 4


class TimestampType(IntEnum):
    """The timestamp type in bit 3 of a batch's attributes; also Spark's column `timestampType`."""

    NO_TIMESTAMP_TYPE = -1
    CREATE_TIME = 0
    LOG_APPEND_TIME = 1


NO_SEQUENCE = -1
NO_TIMESTAMP = -1
NO_EPOCH = -1
NO_PRODUCER = -1
