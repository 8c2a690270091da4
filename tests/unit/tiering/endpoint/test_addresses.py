"""HOST:PORT."""

import pytest

from tiering.endpoint.addresses import host_and_port


def test_an_address_is_a_host_and_a_port() -> None:
    assert host_and_port("kafka.example:9095") == ("kafka.example", 9095)
    assert host_and_port("[::1]:0") == ("::1", 0)
    for wrong in ("", "9095", ":9095", "host:", "host:-1", "host:65536", "host:\uff19"):
        with pytest.raises(ValueError, match="an address HOST:PORT"):
            host_and_port(wrong)
