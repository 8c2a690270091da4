"""The options of every expiry by retention, as a command and as a Spark job, and what they select of the archive."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ParamSpec

import click

from local_log.errors import LogError
from tiering.command.config_option import configured, is_left_alone, topic_globs
from tiering.command.options import (
    archive_option,
    dry_run_option,
    is_given,
    keys_option,
    log_dir_option,
    metadata_log_dir_option,
    output_option,
    tell_unmatched,
    topics_option,
    yes_option,
)
from tiering.machine import IDS

if TYPE_CHECKING:
    from remote.store.api import ObjectStore
    from tiering.cluster import Cluster
    from tiering.retention.policy import Given

P = ParamSpec("P")
_Option = Callable[[Callable[..., Any]], Callable[..., Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpireOptions:
    """What `expire_options` gives."""

    archive_url: str
    keys_address: str | None
    log_dir_path: str | None
    topics: tuple[str, ...]
    settings: tuple[str, ...]
    metadata_log_dir: str | None
    archive_alone: bool
    follow_log_start_offset: bool
    dry_run: bool
    is_agreed: bool
    output: str

    @property
    def counted_log_dir(self) -> str | None:
        """The log directory whose sizes count. Without a local log the configured ones only say which topics are compacted."""
        return None if self.archive_alone else self.log_dir_path

    def cluster(self) -> "Cluster":
        """What brokers say of topics, by --metadata-log-dir, --log-dir and all of a configuration's log.dirs."""
        from tiering.log_dirs import cluster_of

        config = configured()
        dirs = (self.log_dir_path, *(config.settings.log_dirs if config is not None else ()))
        return cluster_of((self.metadata_log_dir, *filter(None, dirs)))

    def retention(self, *, is_start_given: bool) -> "tuple[Given, ...]":
        """The settings of the configuration and of -c. Raises UsageError without any, unless a log start offset is given."""
        from tiering.retention.policy import read_given

        config = configured()
        try:
            given = (*(config.retention if config is not None else ()), *read_given(self.settings))
        except LogError as e:
            raise click.UsageError(str(e)) from e
        if not given and not is_start_given:
            raise click.UsageError("set a retention: -c retention.ms=… or -c retention.bytes=…, for all topics or for some")
        return given

    def refuse_contradictions(self) -> None:
        """Raises UsageError for options that exclude each other."""
        if self.follow_log_start_offset and self.log_dir_path is None:
            raise click.UsageError("--follow-log-start-offset: choose the log with --log-dir")
        if self.archive_alone and is_given("log_dir_path"):
            raise click.UsageError("--archive-alone: leave out --log-dir, or leave out --archive-alone to count what it has")

    def names(self, store: "ObjectStore") -> tuple[str, ...]:
        """Opens the archive; the topics to expire. Tells of globs without a topic. Raises NotFound, and as `open_to_write`."""
        from remote import archive

        archive.open_archive(store) if self.dry_run else archive.open_to_write(store, IDS)
        globs = topic_globs(self.topics)
        found = archive.matching_topics(store, globs)
        tell_unmatched(globs, found, store.url, "--topic" if self.topics else "topics.include")
        return tuple(name for name in found if not is_left_alone(name))


_OPTIONS: tuple[_Option, ...] = (
    archive_option(required=True),
    keys_option(),
    log_dir_option(),
    topics_option(),
    click.option(
        "-c",
        "--set",
        "settings",
        multiple=True,
        metavar="[TOPICS:]NAME=VALUE",
        help="A setting with Kafka's name, for topics that match; may be given several times, and the last that matches counts.",
    ),
    metadata_log_dir_option(),
    click.option("--archive-alone", is_flag=True, help="retention.bytes applies to the archive alone: there is no local log."),
    click.option(
        "--follow-log-start-offset", is_flag=True, help="Delete the records below the local log's start offset, of a tiered log."
    ),
)


def expire_options(*more: _Option) -> Callable[[Callable[P, Any]], Callable[P, Any]]:
    """The options of an expiry, and `more`; `ExpireOptions` has their values."""

    def add(command: Callable[P, Any]) -> Callable[P, Any]:
        for option in reversed((*_OPTIONS, *more, dry_run_option, yes_option, output_option())):
            command = option(command)
        return command

    return add
