"""The endpoint's settings: Kafka's names, types, defaults and bounds, from the command line and from a configuration."""

import pytest

from local_log.errors import Invalid
from tiering.config.settings import read_settings_of
from tiering.endpoint.config_def import ConfigType, Setting
from tiering.endpoint.settings import (
    FETCH_MAX_BYTES,
    MAX_CONNECTIONS_PER_IP_OVERRIDES,
    SASL_MECHANISMS,
    SETTINGS,
    SOCKET_SEND_BUFFER_BYTES,
    SSL_MAPPING,
    read_settings,
)


@pytest.mark.parametrize("setting", SETTINGS.values(), ids=SETTINGS.keys())
def test_a_default_is_read_from_its_own_text(setting: Setting) -> None:
    assert setting.help.endswith(".")
    text = setting.text(setting.default)
    if not text:
        assert setting.default in (None, {}, ())
        return
    assert setting.read(text) == setting.default
    assert read_settings([f" {setting.name} = {text} "])[setting] == setting.default


@pytest.mark.parametrize("name", sorted(SETTINGS.keys() - {SSL_MAPPING.name}))
def test_what_makes_no_sense_is_refused_by_name(name: str) -> None:
    setting = SETTINGS[name]
    with pytest.raises(Invalid, match=rf"^{setting.name}: expected .*(integer|several|one of|address|path|names)"):
        read_settings([f"{setting.name}=-----x"])
    if setting.type in (ConfigType.INT, ConfigType.LONG):
        below = "-2" if setting is SOCKET_SEND_BUFFER_BYTES else "-1"
        for wrong in (below, "", "1.5", "1e3", str(1 << (31 if setting.type is ConfigType.INT else 63))):
            with pytest.raises(Invalid, match=f"^{setting.name}: expected an integer from"):
                read_settings([f"{setting.name}={wrong}"])


def test_the_nearest_name_is_suggested() -> None:
    with pytest.raises(Invalid, match=r"'fetch.max.byte' is no setting of the endpoint; did you mean fetch.max.bytes\?"):
        read_settings(["fetch.max.byte=2000"])
    with pytest.raises(Invalid, match=r"there are socket\.request\.max\.bytes, queued"):
        read_settings(["zzz=1"])


def test_the_last_of_a_name_counts_and_all_count_more_than_a_configuration() -> None:
    assert read_settings([], {"fetch.max.bytes": 5000})[FETCH_MAX_BYTES] == 5000
    found = read_settings(["fetch.max.bytes=6000", "fetch.max.bytes=7000"], {"fetch.max.bytes": 5000})
    assert found[FETCH_MAX_BYTES] == 7000
    assert found.given == {"fetch.max.bytes": 7000}


def test_limits_by_address_are_read_and_written() -> None:
    read = MAX_CONNECTIONS_PER_IP_OVERRIDES.read
    assert read("192.0.2.1:100, ::1:7") == {"192.0.2.1": 100, "::1": 7}
    assert MAX_CONNECTIONS_PER_IP_OVERRIDES.text(read("192.0.2.1:100,::1:7")) == "192.0.2.1:100,::1:7"
    for wrong in ("localhost:5", "192.0.2.1", "192.0.2.1:-1", "192.0.2.1:many"):
        with pytest.raises(Invalid, match="expected IP addresses with limits"):
            read_settings([f"{MAX_CONNECTIONS_PER_IP_OVERRIDES.name}={wrong}"])


def test_a_configuration_reads_them_likewise() -> None:
    settings, wrong = read_settings_of({"fetch.max.bytes": "2048", "sasl.enabled.mechanisms": ("PLAIN",), "node.id": "x"})
    assert settings.fetch_max_bytes == 2048  # type: ignore[attr-defined]  # these fields are made of SETTINGS
    assert wrong["node.id"] == "node.id=x: expected an integer from 0 to 2147483647"
    assert SASL_MECHANISMS.name in wrong  # a list is written with commas
    assert settings.max_connections_per_ip_overrides == {}  # type: ignore[attr-defined]
