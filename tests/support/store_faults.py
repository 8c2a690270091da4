"""What may go wrong with one call of a store, by a name; each makes a store around another, for the number of the call."""

from collections.abc import Callable

from archive_fakes import AppliesLate, CallNumber, CrashesAt, Door, FailsBefore, LosesAnswer

from local_log.errors import Unavailable
from remote.store.api import ObjectStore

Fault = Callable[[ObjectStore, int], Door]
FAULTS: dict[str, Fault] = {
    "fails from then on": lambda store, n: FailsBefore(store, Unavailable("down"), CallNumber(n, on=True)),
    "takes effect, answer lost": lambda store, n: LosesAnswer(store, CallNumber(n)),
    "times out, lands later": lambda store, n: AppliesLate(store, CallNumber(n)),
    "killed before": lambda store, n: CrashesAt(store, n, after=False),
    "killed after": lambda store, n: CrashesAt(store, n, after=True),
}
