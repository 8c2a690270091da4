"""The mutants break what is there: one that replaces what has another name by now would break nothing."""

import histories.mutants
import pytest
from histories.mutants import MUTANTS


@pytest.mark.parametrize("name", [name for name in MUTANTS if name != "truncate-at-start"])
def test_a_mutant_replaces_what_is_there(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    replaced: list[tuple[str, object]] = []

    def only_look(owner: object, attribute: str, made: object) -> None:
        assert getattr(owner, attribute) is not made
        replaced.append((attribute, owner))

    monkeypatch.setattr(histories.mutants, "replace", only_look)
    MUTANTS[name]()
    assert replaced
