"""ListTransactions (66): the transactional ids that are coordinated here."""

from dataclasses import dataclass

from tiering.endpoint.protocol.fields import INT64, STRING, array, int16, int32, int64, string


@dataclass(frozen=True, slots=True)
class ListTransactionsRequest:
    """What is wanted of them; what is empty or negative wants all."""

    state_filters: tuple[str, ...] = array(STRING)
    producer_id_filters: tuple[int, ...] = array(INT64)
    duration_filter: int = int64("1+", default=-1)
    transactional_id_pattern: str | None = string("2+", nullable="2+", default=None)


@dataclass(frozen=True, slots=True)
class ListedTransaction:
    """A transactional id."""

    transactional_id: str = string()
    producer_id: int = int64()
    transaction_state: str = string()


@dataclass(frozen=True, slots=True)
class ListTransactionsResponse:
    """The transactional ids, and the names of states that there are not."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    unknown_state_filters: tuple[str, ...] = array(STRING)
    transaction_states: tuple[ListedTransaction, ...] = array(ListedTransaction)
