"""Timestamp to offset for all partitions of topics, spread over Spark's executors.

python -m spark_jobs.jobs.search --archive s3://bucket/prefix --topic orders --timestamp 1700000000000
"""

import click

from remote import archive as archives
from remote.manifest.model import Manifest
from remote.reader import ArchivedLog
from remote.reading import Reading, decoded_with
from remote.stores import open_store
from spark_jobs.jobs.attempts import attempt
from spark_jobs.jobs.outcome import ending, settled
from tiering.cli.offsets import Answer, show
from tiering.console import archive_option, keys_option, output_option


def find(archive: str, manifest: Manifest, timestamp_ms: int, keys: str | None) -> Answer:
    """The first record of one partition that is as late as the timestamp; runs on an executor."""
    log = ArchivedLog(open_store(archive), manifest, reading=Reading(decoded_with(keys)))
    return manifest.topic, manifest.partition, log.offset_for_time(timestamp_ms, log.log_start_offset, log.end_offset)


def run(
    archive: str, topics: tuple[str, ...], timestamp_ms: int, master: str | None = None, keys: str | None = None
) -> tuple[tuple[Answer, ...], Exception | None]:
    """The answers for all partitions of the topics (of all topics where none is named), in order.

    With them comes the worst of the errors of partitions that have none, such as MissingRange where the record could lie in
    a gap.
    """
    from spark_jobs.session import session

    store = open_store(archive)
    archives.open_archive(store)
    if topics:
        manifests = [m for topic in topics for m in archives.manifests(store, topic)]
    else:
        manifests = [m for topic in archives.topics(store) for m in archives.newest_manifests(store, topic)]
    if not manifests:
        return (), None
    tasks = session("tiering search", master=master).sparkContext.parallelize(manifests, min(len(manifests), 1000))
    found, error = settled(tasks.map(lambda m: attempt(lambda m: find(archive, m, timestamp_ms, keys), m)).collect())
    return tuple(sorted(found, key=lambda f: f[:2])), error


@click.command("search")
@archive_option(required=True)
@keys_option()
@click.option("--topic", "topics", multiple=True, help="A topic; may be given several times; default: all.")
@click.option("--timestamp", type=click.IntRange(min=0), required=True, metavar="MS", help="Milliseconds since 1970.")
@click.option("--master", help="Spark's master; default: the one of spark-submit, or all cores of this machine.")
@output_option()
def main(
    archive_url: str, keys_address: str | None, topics: tuple[str, ...], timestamp: int, master: str | None, output: str
) -> None:
    """Find the first offset whose record is as late as a time, for every archived partition."""

    def job() -> None:
        answers, error = run(archive_url, topics, timestamp, master, keys_address)
        show(answers, output)
        if error is not None:
            raise error

    ending("search", job)


if __name__ == "__main__":
    main()
