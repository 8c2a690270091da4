"""The states of a transactional id, which may follow which, and what each answers (Kafka's TransactionState).

            partitions are added               the producer ends it                 every partition has its marker
    Empty ------------------------> Ongoing --------------------------> PrepareCommit ------------------------> CompleteCommit
                                     ^   |                              PrepareAbort  ------------------------> CompleteAbort
                                     |   |                                 ^                                      |   |
                                     |   +-- PrepareEpochFence ------------+                                      |   |
                                     |       its time is up, or another producer begins with the id               |   |
                                     +--------------------------- partitions are added ---------------------------+   |
    Empty <----------------------------------------------- a producer begins with the id -----------------------------+

    Empty, CompleteCommit, CompleteAbort --- not used for long ---> Dead
    Empty, CompleteCommit, CompleteAbort --- aborted without partitions (transaction version 2) ---> PrepareAbort

PrepareEpochFence and Dead are never written.
"""

from collections.abc import Mapping
from enum import IntEnum
from typing import Final

from tiering.endpoint.protocol.errors import ErrorCode


class TransactionState(IntEnum):
    """As records have them."""

    EMPTY = 0
    ONGOING = 1
    PREPARE_COMMIT = 2
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    COMPLETE_ABORT = 5
    DEAD = 6
    PREPARE_EPOCH_FENCE = 7

    @property
    def title(self) -> str:
        """As clients are told."""
        return self.name.title().replace("_", "")


EMPTY, ONGOING, DEAD = TransactionState.EMPTY, TransactionState.ONGOING, TransactionState.DEAD
PREPARE_COMMIT, PREPARE_ABORT = TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT
COMPLETE_COMMIT, COMPLETE_ABORT = TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT
PREPARE_EPOCH_FENCE = TransactionState.PREPARE_EPOCH_FENCE

IDLE: Final = frozenset({EMPTY, COMPLETE_COMMIT, COMPLETE_ABORT})
"""Those in which no transaction is open: a producer may begin with the id, and the id may expire."""
PREPARED: Final = frozenset({PREPARE_COMMIT, PREPARE_ABORT})
"""Those whose outcome is decided, while markers are missing."""

PREVIOUS: Final[Mapping[TransactionState, frozenset[TransactionState]]] = {
    EMPTY: IDLE,
    ONGOING: IDLE | {ONGOING},
    PREPARE_COMMIT: frozenset({ONGOING}),
    PREPARE_ABORT: IDLE | {ONGOING, PREPARE_EPOCH_FENCE},
    COMPLETE_COMMIT: frozenset({PREPARE_COMMIT}),
    COMPLETE_ABORT: frozenset({PREPARE_ABORT}),
    DEAD: IDLE,
    PREPARE_EPOCH_FENCE: frozenset({ONGOING}),
}
"""The states that a state may follow."""

ENDS: Final[Mapping[TransactionState, TransactionState]] = {PREPARE_COMMIT: COMPLETE_COMMIT, PREPARE_ABORT: COMPLETE_ABORT}
"""What a prepared state becomes when every partition has its marker."""

_DONE, _WAIT, _WRONG = ErrorCode.NONE, ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.INVALID_TXN_STATE
_FENCED = ErrorCode.PRODUCER_FENCED
_BEGIN: Final = None
"""The transaction is ended now."""

Ends = Mapping[TransactionState, tuple[ErrorCode | None, ErrorCode | None]]
"""The answers to a commit and to an abort, None where it is ended now."""

ON_END_V1: Final[Ends] = {
    EMPTY: (_WRONG, _WRONG),
    ONGOING: (_BEGIN, _BEGIN),
    PREPARE_COMMIT: (_WAIT, _WRONG),
    PREPARE_ABORT: (_WRONG, _WAIT),
    COMPLETE_COMMIT: (_DONE, _WRONG),
    COMPLETE_ABORT: (_WRONG, _DONE),
}
"""With the current epoch, from a client that does not know of transaction version 2."""

ON_END_V2: Final[Ends] = {
    EMPTY: (_WRONG, _BEGIN),
    ONGOING: (_BEGIN, _BEGIN),
    PREPARE_COMMIT: (_WAIT, _WAIT),
    PREPARE_ABORT: (_WAIT, _WAIT),
    COMPLETE_COMMIT: (_WRONG, _BEGIN),
    COMPLETE_ABORT: (_WRONG, _BEGIN),
}
"""With the current epoch in transaction version 2, in which each end has a new one: a client that is uncertain aborts. While
markers are missing, who was answered has the epoch, or the id, of the next transaction already."""

ON_END_AGAIN_V2: Final[Ends] = {
    EMPTY: (_FENCED, _FENCED),
    ONGOING: (_FENCED, _FENCED),
    PREPARE_COMMIT: (_WAIT, _WRONG),
    PREPARE_ABORT: (_WRONG, _WAIT),
    COMPLETE_COMMIT: (_DONE, _WRONG),
    COMPLETE_ABORT: (_WRONG, _DONE),
}
"""With the epoch before the current one: the answer to the first request was lost."""
