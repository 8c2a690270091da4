import pytest

from local_log.errors import Corrupt, Newer
from tiering.endpoint.quotas.client_quotas import ClientQuotas
from tiering.endpoint.quotas.quota_file import read_quotas, write_quotas
from tiering.endpoint.quotas.rate import Rate


def test_a_rate_is_that_of_all_windows_also_of_those_before_the_first_record() -> None:
    rate = Rate()
    rate.record(10_000, 0)
    assert rate.throttle_ms(1_000, 0) == 0
    rate.record(10_000, 0)
    assert rate.throttle_ms(1_000, 0) == 10_000
    assert rate.throttle_ms(1_000, 4_000) == 10_000  # four windows of nothing more take the place of four before
    assert rate.throttle_ms(1_000, 10_500) == 9_500
    assert rate.throttle_ms(1_000, 11_000) == 0


def test_windows_slide() -> None:
    rate = Rate(samples=3, window_ms=1_000)
    for now_ms in range(0, 20_000, 500):
        rate.record(500, now_ms)
        assert rate.throttle_ms(1_000, now_ms) <= 500, now_ms
        assert len(rate._windows) <= 4  # one more than its samples
    rate.record(9_000, 20_000)
    assert rate.throttle_ms(1_000, 20_000) > 8_000
    rate.record(-9_000, 20_000)
    assert rate.throttle_ms(1_000, 20_000) <= 500


PRECEDENCE = [
    ("alice", "spark"),
    ("alice", "*"),
    ("alice", None),
    ("*", "spark"),
    ("*", "*"),
    ("*", None),
    (None, "spark"),
    (None, "*"),
]


def test_the_quota_that_names_the_client_most_precisely_counts() -> None:
    shared = {
        ("alice", None): ("alice", None),
        ("*", None): ("alice", None),
        (None, "spark"): (None, "spark"),
        (None, "*"): (None, "spark"),
    }
    for place, of in enumerate(PRECEDENCE):
        quotas = ClientQuotas({entity: number + 1 for number, entity in enumerate(PRECEDENCE) if number >= place})
        assert quotas.quota("alice", "spark") == (shared.get(of, ("alice", "spark")), place + 1)
    assert ClientQuotas({("bob", None): 1, (None, "other"): 1}).quota("alice", "spark") is None


def test_who_shares_a_quota_uses_it_up_together_and_others_do_not() -> None:
    quotas = ClientQuotas({("*", None): 1_000})
    assert quotas.bytes_max("alice", "spark") == 10_000
    assert quotas.throttle_ms("alice", "spark", 10_000, 0) == 0
    assert quotas.throttle_ms("alice", "kcat", 5_000, 0) == 5_000
    assert quotas.throttle_ms("alice", "kcat", 1_000, 0) == 1_000  # what was refused was not counted
    assert quotas.throttle_ms("bob", "kcat", 5_000, 0) == 0
    assert quotas.throttle_ms("alice", "kcat", 9_000, 11_000) == 0
    assert ClientQuotas().throttle_ms("alice", "spark", 1 << 40, 0) == 0
    assert ClientQuotas().bytes_max("alice", "spark") is None


def test_quotas_are_read_by_user_and_client_id() -> None:
    one, other = b'{"user": "alice", "client-id": "*", "consumer_byte_rate": 5}', b'{"user": "*", "consumer_byte_rate": 7}'
    assert read_quotas(b'{"format": 1, "quotas": [' + one + b", " + other + b"]}") == {
        "consumer_byte_rate": {("alice", "*"): 5, ("*", None): 7},
        "producer_byte_rate": {},
    }


def test_a_client_may_have_quotas_for_both_directions() -> None:
    both = b'{"format": 1, "quotas": [{"user": "alice", "consumer_byte_rate": 5, "producer_byte_rate": 3},'
    rates = read_quotas(both + b'{"client-id": "spark", "producer_byte_rate": 9}]}')
    assert rates == {
        "consumer_byte_rate": {("alice", None): 5},
        "producer_byte_rate": {("alice", None): 3, (None, "spark"): 9},
    }
    assert read_quotas(write_quotas(rates)) == rates


@pytest.mark.parametrize(
    "quota",
    [
        '{"consumer_byte_rate": 1}',
        '{"user": "a"}',
        '{"user": "a", "consumer_byte_rate": 0}',
        '{"user": "a", "consumer_byte_rate": true}',
        '{"user": "a", "consumer_byte_rate": 1.5}',
        '{"user": 7, "consumer_byte_rate": 1}',
        '{"user": "a", "request_percentage": 1, "consumer_byte_rate": 1}',
        '{"user": "a", "producer_byte_rate": 0, "consumer_byte_rate": 1}',
        "[]",
    ],
)
def test_what_is_no_quota_is_refused(quota: str) -> None:
    with pytest.raises(Corrupt):
        read_quotas(f'{{"format": 1, "quotas": [{quota}]}}'.encode())
    with pytest.raises(Newer):
        read_quotas(b'{"format": 2, "quotas": []}')
