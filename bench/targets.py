"""What figures are to reach: each stands beside its target, and a table at the end says which are met."""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Target:
    """A figure and its bound, which it is to reach, or not to exceed."""

    what: str
    figure: float
    bound: float
    is_least: bool

    @property
    def is_met(self) -> bool:
        """As shown: what rounds to the bound has reached it."""
        shown, bound = round(self.figure, 2), round(self.bound, 2)
        return shown >= bound if self.is_least else shown <= bound


@dataclass(frozen=True)
class Targets:
    """Those of a part, in the order of measuring."""

    found: list[Target] = field(default_factory=list)

    def at_least(self, what: str, figure: float, bound: float) -> None:
        """A figure, and what it has to be."""
        self.found.append(Target(what, figure, bound, True))

    def at_most(self, what: str, figure: float, bound: float) -> None:
        """A figure, and what it may be."""
        self.found.append(Target(what, figure, bound, False))

    def show(self) -> None:
        """The table."""
        met = sum(one.is_met for one in self.found)
        print(f"Targets: {met} of {len(self.found)} are met")
        for one in self.found:
            sign = ">=" if one.is_least else "<="
            print(f"  {one.what:56} {one.figure:8.2f}  {sign} {one.bound:6.2f}  {'met' if one.is_met else 'MISSED'}")
