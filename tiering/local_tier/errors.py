"""The errors of commands on topics, as Kafka's protocol has them; `code` is the number there."""

from typing import ClassVar

from local_log.errors import Invalid, NotFound


class TopicExists(Invalid):
    """A topic of this name exists. Kafka's TopicExistsException."""

    code: ClassVar[int] = 36


class InvalidTopic(Invalid):
    """A name that no topic can have, or one that collides with another topic's. Kafka's InvalidTopicException."""

    code: ClassVar[int] = 17


class InvalidPartitions(Invalid):
    """A number of partitions that a topic cannot have. Kafka's InvalidPartitionsException."""

    code: ClassVar[int] = 37


class InvalidTopicConfig(Invalid):
    """Settings that a topic cannot have. Kafka's InvalidConfigurationException."""

    code: ClassVar[int] = 40


class UnknownTopicOrPartition(NotFound):
    """No such topic or partition in these log directories. Kafka's UnknownTopicOrPartitionException."""

    code: ClassVar[int] = 3
