"""`tiering scrub`: the proof that an archive is what its manifests say."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from tiering.command.exit_codes import Exit, reports_errors
from tiering.command.options import (
    archive_option,
    keys_option,
    output_option,
    tell_unmatched,
    topic_ids_option,
    topics_option,
)
from tiering.command.scrub_report import sampling_options, settings_of, show, verdict
from tiering.command.terminal import has_terminal
from tiering.machine import CLOCK, open_archive_store

if TYPE_CHECKING:
    from remote.scrub.settings import ScrubSettings
    from remote.store.api import ObjectStore


@dataclass(frozen=True, slots=True)
class Options:
    """The options of `tiering scrub`."""

    archive_url: str
    keys_address: str | None
    topics: tuple[str, ...]
    topic_ids: dict[str, str]
    deep: bool
    sample: float | None
    seed: int | None
    requests_max: int | None
    output: str


@click.command("scrub")
@archive_option(required=True)
@keys_option()
@topics_option()
@topic_ids_option()
@click.option("--deep", is_flag=True, help="Read all segments: every batch, every index.")
@sampling_options
@output_option()
@reports_errors
def command(**given: Any) -> Exit | None:
    """Check that every manifest, object and offset of an archive is intact. Print a line for each finding; change nothing.

    Without --deep it needs a listing and one request per manifest, and finds objects that are missing, of a different size or
    orphaned, and broken chains of manifests. With --deep every segment is read, and the markers of transactions are compared with
    what consumers with read_committed are told (missing_abort, false_abort). Without the key of an encrypted segment, only its
    stored bytes are verified, and it is reported as unreadable.

    The exit code is 6 if there is an anomaly, otherwise 3 if something is unreadable. gap, fresh_orphan and left_out are no
    anomalies.

    \b
    Examples:
      tiering scrub --archive s3://bucket/kafka
      tiering scrub --archive s3://bucket/kafka --deep --sample 0.01 --seed 7
    """
    from remote import archive
    from remote.read.context import decoder_with
    from remote.scrub.budget import RequestBudget
    from remote.scrub.scrub import scrub
    from remote.store.instrumented import Meter
    from tiering.command.progress import shown

    options = Options(**given)
    settings = settings_of(options.deep, options.sample, options.seed)
    decoded = decoder_with(options.keys_address)
    meter = Meter()
    backend = open_archive_store(options.archive_url, options.keys_address, unverified_allowed=True, meter=meter)
    archive.open_archive(backend)
    wanted = archive.select_folders(backend, options.topics, options.topic_ids)
    tell_unmatched(options.topics, [folder.partition("/")[0] for folder in wanted or ()], backend.url)
    store = RequestBudget(backend, options.requests_max)
    is_shown = options.deep and options.requests_max is None and has_terminal()
    unmetered = open_archive_store(options.archive_url, options.keys_address, unverified_allowed=True)
    of_bytes = _bytes_of(unmetered, settings, options.topics, options.topic_ids) if is_shown else 0
    with shown("scrub", lambda: of_bytes, lambda: sum(counted.bytes for counted in meter.snapshot().values())):
        kinds = show(scrub(store, decoded, settings, CLOCK.now_ms(), wanted), options.output)
    return verdict("tiering", kinds, store.requests)


def _bytes_of(store: "ObjectStore", settings: "ScrubSettings", topics: tuple[str, ...], topic_ids: dict[str, str]) -> int:
    """About what a deep scrub will read. It takes a request a manifest, of which the scrub itself counts and measures none."""
    from remote import archive
    from remote.manifest.model import Manifest

    names = archive.matching_topics(store, topics or topic_ids)
    newest = (archive.find_topic(store, topic, topic_ids.get(topic)).partitions.values() for topic in names)
    readable = (one for of_topic in newest for one in of_topic if isinstance(one, Manifest))
    return int(settings.sample * sum(one.log_bytes + one.aux_bytes for one in readable))
