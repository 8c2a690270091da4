"""Contestants that take turns, and what each achieved."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Figure:
    """What one contestant read in how long; `bytes` are those of the records when they are not compressed, 0 for not asked."""

    records: int
    bytes: float
    seconds: float

    def __str__(self) -> str:
        rate = f"{self.records / self.seconds / 1e6:7.2f} M records/s"
        return f"{rate}  {self.bytes / self.seconds / 1e9:6.2f} GB/s" if self.bytes else rate


def compare(contestants: Mapping[str, Callable[[], Figure]], rounds: int) -> None:
    """Lets them take turns; prints the best figure of each, and how many times faster than it the first one is."""
    best: dict[str, Figure] = {}
    for _ in range(rounds):
        for name, run in contestants.items():
            figure = run()
            if name not in best or figure.seconds < best[name].seconds:
                best[name] = figure
    first = next(iter(best.values()))
    for name, figure in best.items():
        ratio = first.records / first.seconds / (figure.records / figure.seconds)
        print(f"  {name:48} {figure!s:44} {ratio:6.2f}", flush=True)
