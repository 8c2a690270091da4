"""Deletion policies: Kafka's, and plug-ins, good and faulty."""

from importlib.metadata import EntryPoint
from typing import Any

import pytest
from local_tiers import ORDERS, Host, produce

from local_log.engine.manager.retention import Aged, Breach, Retained, by_size, by_time
from local_log.errors import Invalid
from tiering.local_tier import deletion_policies
from tiering.local_tier.deletion_policies import GROUP, FaultyPolicy, load_policies


def keep_one_segment(_retained: Retained) -> Breach[Aged] | None:
    return lambda segment, following: following is not None


def keep_all(_retained: Retained) -> Breach[Aged] | None:
    return None


def raising(_retained: Retained) -> Breach[Aged] | None:
    raise KeyError("x")


def raising_rule(_retained: Retained) -> Any:
    return lambda segment, following: 1 / 0


def undecided(_retained: Retained) -> Any:
    return lambda segment, following: None


NO_FUNCTION = 7


@pytest.fixture(autouse=True)
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The functions above as entry points, and one that leads nowhere."""
    names = ("keep_one_segment", "keep_all", "raising", "raising_rule", "undecided", "NO_FUNCTION", "nowhere")
    points = [EntryPoint(name, f"{__name__}:{name}", GROUP) for name in names]
    monkeypatch.setattr(deletion_policies, "entry_points", lambda group: points if group == GROUP else [])


def test_kafka_s_policies_have_names() -> None:
    assert load_policies(("time", "size")) == (by_time, by_size)


@pytest.mark.parametrize(("names", "left"), [(("keep_one_segment",), 1), (("keep_all",), 20), ((), 20), (("size", "time"), 1)])
def test_the_chosen_policies_alone_say_what_goes(names: tuple[str, ...], left: int) -> None:
    host = Host(dirs=("/a",))
    tier = host.tier(policies=load_policies(names))
    tier.start()
    tier.create_topic("orders")
    produce(tier, ORDERS, 100)
    assert len(tier.log(ORDERS).local.segments) == 20
    assert host.later(tier, 700_000) == ()
    assert len(tier.log(ORDERS).local.segments) == left


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("raising", "it raised KeyError: 'x'"),
        ("raising_rule", "it raised ZeroDivisionError: division by zero"),
        ("undecided", "its rule returned None, not True or False"),
    ],
)
def test_a_faulty_plug_in_deletes_nothing_and_is_told(name: str, problem: str) -> None:
    host = Host(dirs=("/a",))
    tier = host.tier(policies=load_policies((name,)))
    tier.start()
    tier.create_topic("orders")
    produce(tier, ORDERS, 100)
    [told] = host.later(tier, 700_000)
    assert isinstance(told, FaultyPolicy)
    assert str(told).startswith(f"deletion policy {name}: {problem}; nothing is deleted by it")
    assert len(tier.log(ORDERS).local.segments) == 20


@pytest.mark.parametrize("name", ["NO_FUNCTION", "nowhere"])
def test_a_plug_in_that_is_none_is_refused_when_it_is_loaded(name: str) -> None:
    with pytest.raises(FaultyPolicy, match=f"deletion policy {name}: .*{__name__}"):
        load_policies((name,))


def test_an_unknown_policy_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(Invalid, match="there is no policy oldest; there are size, time, NO_FUNCTION, keep_all"):
        load_policies(("size", "oldest"))
