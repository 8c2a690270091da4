"""All options of all commands, those of the Spark jobs too: a name that somebody has learned means the same everywhere."""

import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from importlib import import_module

import click
import pytest

from spark_jobs.errors import OptionError
from spark_jobs.sink import options as sink_options
from spark_jobs.sink.options import parse as write_options
from spark_jobs.source import options as source_options
from spark_jobs.source.options import parse as read_options
from spark_jobs.source.stream.options import parse_stream
from spark_jobs.submit import JOBS
from tiering.cli import main
from tiering.command.manual import command_of, commands
from tiering.command.quantities import Quantity

Named = tuple[str, click.Command]


def _of_tiering() -> Iterator[Named]:
    for words in commands(main):
        yield " ".join(("tiering", *words)), command_of(main, words)


def _of_spark() -> Iterator[Named]:
    for job in JOBS:
        yield f"job {job}", import_module(f"spark_jobs.jobs.{job}").main


ALL: dict[str, click.Command] = dict([*_of_tiering(), *_of_spark()])

FORMS: dict[str, set[str | None]] = {
    "--set": {"NAME=VALUE", "[TOPICS:]NAME=VALUE"},
    "--to": {"DIR", "FILE", "URL"},
    "--topic": {"GLOB", "TOPIC"},
    "--topic-id": {"ID", "TOPIC=ID"},
}
"""How values of an option look where that depends on what a command is for: one topic or many, a folder or a file."""
TEXTS = {
    "--config": "a command goes by nothing else, or takes from it what its options leave open",
    "--key": "what else narrows a search differs",
    "--log-start-offset": "of a log that is recovered, or up to which a topic is deleted",
    "--own-log-dir": "what its owner does there differs",
    "--partition": "all of them without it, or there is no without",
    "--to": "what is written differs",
    "--set": "settings of topics, or of the endpoint",
    "--topic": "what is done to the topic differs",
    "--users": "written, or read by the endpoint",
    "--topic-id": "an id that is looked for, or one that is given",
}
"""Options whose help says more than one thing, and why."""
REPEATED = {"--own-log-dir": "a server owns all log.dirs of its process, a command works on one of them"}
"""Options that some commands take several times and others once, and why."""
WITHOUT_ROWS = {
    "tiering", "tiering agent", "tiering agent pause", "tiering agent resume", "tiering agent unit", "tiering completion",
    "tiering config", "tiering config check", "tiering diverged",
    "tiering log", "tiering man", "tiering manifest", "tiering manifest export",
    "tiering metrics", "tiering metrics alerts", "tiering metrics dashboard", "tiering serve", "tiering users",
    "tiering topics", "tiering users delete", "tiering users set", "job backfill", "job reprocess",
}  # fmt: skip
"""Commands that only do something, or whose answer is one document of a form of its own."""


def options() -> Iterator[tuple[str, str, click.Option]]:
    """Every option by the command that has it and its long name."""
    for name, command in ALL.items():
        for option in command.params:
            if isinstance(option, click.Option):
                (long,) = (text for text in option.opts if text.startswith("--"))
                yield name, long, option


def by_name() -> dict[str, list[tuple[str, click.Option]]]:
    """The commands that have an option, and theirs; `tiering --version` alone is not among them, as every program has it."""
    found: dict[str, list[tuple[str, click.Option]]] = defaultdict(list)
    for command, name, option in options():
        if command != "tiering":
            found[name].append((command, option))
    return found


def test_all_commands_and_jobs_are_looked_at() -> None:
    assert {"tiering offload", "tiering manifest show", "tiering agent unit", "job backfill"} < set(ALL)
    assert len(by_name()) > 60


def test_every_option_has_a_sentence_that_says_what_it_is() -> None:
    assert [(c, name) for c, name, option in options() if not (option.help or "").endswith(".")] == []


def test_every_option_that_takes_a_value_says_how_it_looks() -> None:
    unsaid = [
        (command, name)
        for command, name, option in options()
        if not (option.is_flag or option.metavar or isinstance(option.type, click.Choice))
    ]
    assert unsaid == []


def test_an_option_that_may_be_given_several_times_says_so() -> None:
    assert [(c, name) for c, name, o in options() if o.multiple != ("may be given several times" in (o.help or ""))] == []


@pytest.mark.parametrize("name", sorted(by_name()))
def test_an_option_of_one_name_is_the_same_on_every_command(name: str) -> None:
    found = by_name()[name]
    forms = {option.metavar for _, option in found}
    assert forms == FORMS.get(name, forms if len(forms) == 1 else {"one form"}), found
    for form in forms:
        of_form = [option for _, option in found if option.metavar == form]
        assert len({repr(o.type) if not isinstance(o.type, click.Path | click.File) else "file" for o in of_form}) == 1
        assert len({(o.is_flag, tuple(o.secondary_opts), str(o.envvar)) for o in of_form}) == 1
        assert len({o.multiple for o in of_form}) == 1 + (name in REPEATED)
        assert len({o.help for o in of_form}) == 1 or name in TEXTS, {o.help for o in of_form}
    defaults = {o.default for command, o in found if not command.startswith("tiering log ") or name != "--output"}
    assert len(defaults) == 1, "a log is dumped as JSON, since a table of records is cut"


QUANTITIES = {
    "TIME": [
        ("1795168800000", "1795168800000"),
        ("2026-11-20T10:00Z", "1795168800000"),
        ("2026-11-20 12:00+02:00", "1795168800000"),
    ],
    "DURATION": [("604800000", "604800000"), ("7d", "604800000"), ("1h30m", "5400000")],
    "SIZE": [("1048576", "1048576"), ("1MiB", "1048576"), ("2MB", "2000000")],
    "RATE": [("50000000", "50000000"), ("50MB/s", "50000000"), ("1MiB", "1048576")],
}
"""Of each kind of value texts that people write, and the numbers that they stand for."""


@pytest.mark.parametrize(
    ("command", "name", "option"), [(c, n, o) for c, n, o in options() if o.metavar in QUANTITIES], ids=lambda v: str(v)[:40]
)
def test_a_quantity_is_taken_as_people_write_it(command: str, name: str, option: click.Option) -> None:
    context = click.Context(ALL[command])
    for text, number in QUANTITIES[str(option.metavar)]:
        assert str(option.process_value(context, text)) == number
    with pytest.raises(click.BadParameter, match="expected"):
        option.process_value(context, "7 parsecs")


A_NUMBER = [("0", "0"), ("4711", "4711"), (str((1 << 63) - 1), str((1 << 63) - 1))]
ENDS = [("earliest", "earliest"), ("latest", "latest")]
KAFKA_S_WORDS = ("latest", "earliest", "max-timestamp", "earliest-local", "latest-tiered", "earliest-pending-upload")
OFFSETS = {
    "--offset": [*A_NUMBER, *ENDS, ("-10", "-10"), ("-1", "-1"), ("-0", "latest")],
    "--log-start-offset": A_NUMBER,
    "--recovery-point": A_NUMBER,
    "--until-offset": A_NUMBER,
    "offset": A_NUMBER,
    "--offsets": [('{"orders": {"0": [0, 1200], "1": [17, 17]}}', "{'orders': {0: (0, 1200), 1: (17, 17)}}")],
    "--time": [(form, word) for at, word in enumerate(KAFKA_S_WORDS, 1) for form in (word, str(-at))],
    "--segments-before": [("latest", "-1"), ("-1", "-1"), ("earliest", "-2"), ("-2", "-2")],
}
"""Of each option and argument that takes an offset, or a word for one instead of a time, the forms, and what is read."""


def _takes_an_offset(parameter: click.Parameter) -> bool:
    is_value = isinstance(parameter, click.Argument) or not getattr(parameter, "is_flag", False)
    is_time_or_word = parameter.metavar == "TIME" and not isinstance(parameter.type, Quantity)
    return is_value and (is_time_or_word or bool(re.search("(offsets?|recovery-point)$", parameter.opts[-1])))


TAKING_OFFSETS = [(c, p) for c, command in ALL.items() for p in command.params if _takes_an_offset(p)]


def test_every_form_of_an_offset_is_of_an_option_or_argument() -> None:
    assert {parameter.opts[-1] for _, parameter in TAKING_OFFSETS} == set(OFFSETS)


@pytest.mark.parametrize(("command", "parameter"), TAKING_OFFSETS, ids=lambda v: str(v)[:40])
def test_an_offset_is_taken_as_people_and_kafka_write_it(command: str, parameter: click.Parameter) -> None:
    context = click.Context(ALL[command])
    for text, offset in OFFSETS[parameter.opts[-1]]:
        assert str(parameter.process_value(context, text)) == offset
    for wrong in ("7 parsecs", "-1 0", "first"):
        with pytest.raises(click.BadParameter, match="expected"):
            parameter.process_value(context, wrong)


def test_no_option_takes_a_quantity_as_a_number_alone() -> None:
    """Each is one of the kinds above, by its name or by what its value is called."""
    named = re.compile(r"-(timestamp|time|ms|bytes|per-second)$")
    assert [(c, n) for c, n, o in options() if named.search(n) and o.metavar not in QUANTITIES] == []


def test_no_reason_is_given_for_what_is_the_same() -> None:
    found = by_name()
    assert {name for name in FORMS if len({o.metavar for _, o in found[name]}) < 2} == set()
    assert {name for name in TEXTS if len({o.help for _, o in found[name]}) < 2} == set()


def test_a_short_name_is_short_for_one_option() -> None:
    short: dict[str, set[str]] = defaultdict(set)
    for _, name, option in options():
        for text in option.opts:
            if not text.startswith("--"):
                short[text].add(name)
    assert short == {"-c": {"--set"}}


@pytest.mark.parametrize("name", sorted(set(ALL) - WITHOUT_ROWS))
def test_a_command_that_answers_rows_has_them_in_three_forms(name: str) -> None:
    assert [option for command, long, option in options() if (command, long) == (name, "--output")]


def test_what_answers_no_rows_has_no_form_of_them() -> None:
    assert WITHOUT_ROWS - ALL.keys() == set()
    assert {command for command, name, _ in options() if name == "--output"} & WITHOUT_ROWS == set()


def test_what_deletes_for_good_can_be_looked_at_first_and_asks() -> None:
    found = by_name()
    deleting = {"job expire", "tiering delete-topic", "tiering diverged resolve", "tiering expire", "tiering sweep"}
    deleting.add("tiering topics delete")
    saying = {"tiering manifest acknowledge", "tiering source-gone"}  # for good, too: what is known to be lost is told no more
    assert {command for command, _ in found["--yes"]} == deleting | saying
    assert {command for command, _ in found["--yes"]} < {command for command, _ in found["--dry-run"]}


@pytest.mark.parametrize("short", ["-h", "--help"])
@pytest.mark.parametrize("name", sorted(name for name in ALL if name.startswith("tiering")))
def test_every_command_has_help_by_both_names(name: str, short: str) -> None:
    from click.testing import CliRunner

    helped = CliRunner().invoke(main, [*name.split()[1:], short])
    assert helped.exit_code == 0
    assert re.match(rf"Usage: \S+ {' '.join(name.split()[1:])}".rstrip(), helped.stdout)
    assert "\x1b" not in helped.stdout


def _limit(name: str) -> Callable[[str], int]:
    return lambda text: getattr(read_options({**NEEDED, name: text}), name[: name.index("ing") + 3]).of("t", 0, name)


def _limit_by_partition(name: str) -> Callable[[str], int]:
    return lambda text: _limit(name)(json.dumps({"t": {"0": int(text) if text.isdigit() else text}}))


NEEDED = {"archive": "a", "subscribe": "t"}
IN_SPARK: dict[str, tuple[str, Callable[[str], int | None]]] = {
    "startingTimestamp": ("TIME", _limit("startingTimestamp")),
    "endingTimestamp": ("TIME", _limit("endingTimestamp")),
    "startingOffsetsByTimestamp": ("TIME", _limit_by_partition("startingOffsetsByTimestamp")),
    "endingOffsetsByTimestamp": ("TIME", _limit_by_partition("endingOffsetsByTimestamp")),
    "asOfTimestamp": ("TIME", lambda text: read_options({**NEEDED, "asOfTimestamp": text}).as_of_timestamp),
    "bytesPerSplit": ("SIZE", lambda text: read_options({**NEEDED, "bytesPerSplit": text}).bytes_per_split),
    "pinHours": ("HOURS", lambda text: read_options({**NEEDED, "pinHours": text}).pin_hours),
    "maxTriggerDelay": ("DURATION", lambda text: parse_stream({**NEEDED, "maxTriggerDelay": text}).max_delay_ms),
    "kafka.batch.size": ("SIZE", lambda text: write_options({"archive": "a", "kafka.batch.size": text}).batch_bytes),
    "kafka.segment.bytes": ("SIZE", lambda text: write_options({"archive": "a", "kafka.segment.bytes": text}).segment_bytes),
}
"""Spark's options that take a quantity: its kind, and what is read."""


@pytest.mark.parametrize("name", IN_SPARK)
def test_a_quantity_is_taken_so_by_an_option_of_spark_s_too(name: str) -> None:
    kind, read = IN_SPARK[name]
    for text, number in {**QUANTITIES, "HOURS": [("36", "36"), ("36h", "36"), ("7d", "168")]}[kind]:
        assert str(read(text)) == number
    with pytest.raises(OptionError, match=f"option {name} is .*expected"):
        read("7 parsecs")


IN_SPARK_S_JSON = [('{"t":{"0":23}}', 23), ('{"t":{"0":0}}', 0)]


@pytest.mark.parametrize(
    ("name", "is_stream", "forms"),
    [
        ("startingOffsets", False, [("earliest", "earliest"), ("Earliest", "earliest"), ('{"t":{"0":-2}}', "earliest")]),
        ("endingOffsets", False, [("latest", "latest"), ("LATEST", "latest"), ('{"t":{"0":-1}}', "latest")]),
        ("startingOffsets", True, [*ENDS, ('{"t":{"0":-2}}', "earliest"), ('{"t":{"0":-1}}', "latest")]),
    ],
)
def test_an_offset_is_taken_by_options_of_spark_s_as_its_kafka_source_does(
    name: str, is_stream: bool, forms: list[tuple[str, int | str]]
) -> None:
    def read(text: str) -> int | str:
        limit = getattr(read_options({**NEEDED, name: text}, streaming=is_stream), name.removesuffix("Offsets"))
        return limit.of("t", 0, name)

    for text, offset in (*forms, *IN_SPARK_S_JSON):
        assert read(text) == offset
    for wrong in ("7 parsecs", "-10", '{"t":{"0":-3}}', '{"t":[0]}', '{"t":{"0":"earliest"}}'):
        with pytest.raises(OptionError, match=f"option {name} is .*(expected|offsets are 0 or more|no whole number)"):
            read(wrong)


def test_no_option_of_spark_s_that_takes_a_quantity_is_forgotten() -> None:
    names = {*source_options._KNOWN, *source_options.STREAM_ONLY, *sink_options._KNOWN}
    assert {name for name in names if re.search("(timestamp|bytes.*|hours|delay|size)$", name, re.IGNORECASE)} == set(IN_SPARK)
