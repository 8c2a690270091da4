"""The endpoint's settings by the names of Kafka's broker settings: text at the command line, values inside."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Final

from local_log.errors import Invalid
from local_log.formats.primitives import INT32_MAX, INT64_MAX


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting, its default and how its text is read. Reading raises ValueError, which says what was expected."""

    name: str
    default: Any
    read: Callable[[str], Any]


def _number(least: int, most: int) -> Callable[[str], int]:
    def read(text: str) -> int:
        if not (text.isascii() and text.isdigit() and least <= int(text) <= most):
            raise ValueError(f"an integer from {least} to {most}")
        return int(text)

    return read


def _names(*known: str) -> Callable[[str], tuple[str, ...]]:
    def read(text: str) -> tuple[str, ...]:
        names = tuple(name.strip() for name in text.split(",") if name.strip())
        if not names or set(names) - set(known):
            raise ValueError(f"one or several of {', '.join(known)}, with commas between them")
        return tuple(dict.fromkeys(names))

    return read


def _one_of(*known: str) -> Callable[[str], str]:
    def read(text: str) -> str:
        if text not in known:
            raise ValueError(f"one of {', '.join(known)}")
        return text

    return read


def _path(text: str) -> str:
    if not text or text.startswith("-----"):
        raise ValueError("the path of a file")
    return text


FAILED_AUTHENTICATION_DELAY: Final = Setting("connection.failed.authentication.delay.ms", 100, _number(0, INT32_MAX))
MAX_REAUTHENTICATION: Final = Setting("connections.max.reauth.ms", 0, _number(0, INT64_MAX))
SASL_MECHANISMS: Final = Setting(
    "sasl.enabled.mechanisms", ("SCRAM-SHA-256", "SCRAM-SHA-512"), _names("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
)
SASL_RECEIVE_SIZE: Final = Setting("sasl.server.max.receive.size", 512 << 10, _number(1, INT32_MAX))

SSL_CLIENT_AUTH: Final = Setting("ssl.client.auth", "none", _one_of("none", "requested", "required"))
SSL_PROTOCOLS: Final = Setting("ssl.enabled.protocols", ("TLSv1.2", "TLSv1.3"), _names("TLSv1.2", "TLSv1.3"))
SSL_KEY: Final = Setting("ssl.keystore.key.location", None, _path)
"""Not Kafka's: a file of its own for the private key."""
SSL_KEYSTORE: Final = Setting("ssl.keystore.location", None, _path)
SSL_KEYSTORE_TYPE: Final = Setting("ssl.keystore.type", "PEM", _one_of("PEM"))
SSL_MAPPING: Final = Setting("ssl.principal.mapping.rules", "DEFAULT", str)
SSL_TRUSTSTORE: Final = Setting("ssl.truststore.location", None, _path)
SSL_TRUSTSTORE_TYPE: Final = Setting("ssl.truststore.type", "PEM", _one_of("PEM"))

_ALL: Final = (
    FAILED_AUTHENTICATION_DELAY,
    MAX_REAUTHENTICATION,
    SASL_MECHANISMS,
    SASL_RECEIVE_SIZE,
    SSL_CLIENT_AUTH,
    SSL_PROTOCOLS,
    SSL_KEY,
    SSL_KEYSTORE,
    SSL_KEYSTORE_TYPE,
    SSL_MAPPING,
    SSL_TRUSTSTORE,
    SSL_TRUSTSTORE_TYPE,
)
SETTINGS: Final[Mapping[str, Setting]] = {one.name: one for one in _ALL}


@dataclass(frozen=True, slots=True)
class Settings:
    """What is set; all else has its default."""

    given: Mapping[str, Any]

    def __getitem__(self, setting: Setting) -> Any:
        return self.given.get(setting.name, setting.default)


def read_settings(assignments: Iterable[str]) -> Settings:
    """From texts NAME=VALUE, of which the last of a name counts. Raises Invalid."""
    given: dict[str, Any] = {}
    for assignment in assignments:
        name, equals, text = assignment.partition("=")
        setting = SETTINGS.get(name.strip())
        if setting is None or not equals:
            near = get_close_matches(name, SETTINGS, n=1)
            hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(SETTINGS)}"
            raise Invalid(f"{name!r} is no setting of the endpoint; {hint}")
        try:
            given[setting.name] = setting.read(text.strip())
        except ValueError as e:
            raise Invalid(f"{setting.name}: expected {e}") from e
    return Settings(given)
