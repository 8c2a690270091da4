"""Times, durations and sizes as people write them. Pure: text in, whole numbers out; numbers alone stay what they are."""

import re
from datetime import UTC, datetime, timedelta
from typing import Final

TIMES: Final = "ms since 1970, a time such as 2026-11-20T10:00Z (UTC unless it says otherwise), or one before now such as -2h"
DURATIONS: Final = "ms, or a duration such as 30s, 12h, 7d or 1h30m"
SIZES: Final = "bytes, or a size such as 500kB, 50MB or 1.5GiB (MB is 10^6 bytes, MiB and M are 2^20)"
RATES: Final = "bytes a second, or a rate such as 50MB/s"

_INT64_MAX: Final = (1 << 63) - 1
_DIGITS_MAX: Final = 100
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_UNITS_MS: Final = {"ms": 1, "s": 1000, "m": 60_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}
_UNITS_BYTES: Final = {
    "b": 1,
    **{f"{letter}b": 1000**power for power, letter in enumerate("kmgtp", 1)},
    **{f"{letter}ib": 1024**power for power, letter in enumerate("kmgtp", 1)},
    **{letter: 1024**power for power, letter in enumerate("kmgtp", 1)},
}
_AMOUNT: Final = r"([0-9]{1,30}(?:\.[0-9]{1,30})?)\s*([a-z]+)"
_AMOUNTS: Final = re.compile(rf"{_AMOUNT}(?:\s*{_AMOUNT})*", re.IGNORECASE | re.ASCII)


def parse_time(text: str, now_ms: int) -> int:
    """A time in ms since 1970, rounded up to a whole one. Raises ValueError with the forms that are valid."""
    text = text.strip()
    if _is_number(text):
        return _bounded(int(text), text, TIMES)
    if text.lower() == "now":
        return now_ms
    if text.startswith("-") and (ago := _sum(text[1:], _UNITS_MS)) is not None:
        return _bounded(now_ms - ago, text, TIMES)
    try:
        time = datetime.fromisoformat(text)
        before = _EPOCH - (time if time.tzinfo else time.replace(tzinfo=UTC))
    except (ValueError, OverflowError) as e:
        raise _no(text, TIMES) from e
    return _bounded(-(before // timedelta(milliseconds=1)), text, TIMES)


def parse_duration(text: str) -> int:
    """A duration in ms. Raises ValueError with the forms that are valid."""
    return _quantity(text, _UNITS_MS, DURATIONS)


def parse_size(text: str) -> int:
    """A size in bytes. Raises ValueError with the forms that are valid."""
    return _quantity(text, _UNITS_BYTES, SIZES)


def parse_rate(text: str) -> int:
    """A rate in bytes a second. Raises ValueError with the forms that are valid."""
    return _quantity(re.sub(r"\s*/\s*s$", "", text.strip()), _UNITS_BYTES, RATES)


def duration_text(ms: int) -> str:
    """A duration for people, in its two greatest units: `1 d 2 h`, `5 m 6 s`, `0 s`. `parse_duration` takes it."""
    seconds, parts = max(ms, 0) // 1000, list[str]()
    for unit in ("d", "h", "m", "s"):
        count, seconds = divmod(seconds, _UNITS_MS[unit] // 1000)
        if parts:
            parts += [f"{count} {unit}"] if count else []
            break
        if count:
            parts.append(f"{count} {unit}")
    return " ".join(parts) or "0 s"


def size_text(size: int) -> str:
    """A size for people: `0 bytes`, `32.3 kB`, `1.5 GB`. `parse_size` takes those that have a unit."""
    if size < 1000:
        return f"{size} bytes"
    units = iter(("kB", "MB", "GB", "TB", "PB"))
    shown, unit = size / 1000, next(units)
    while shown >= 999.95 and (greater := next(units, None)) is not None:
        shown, unit = shown / 1000, greater
    return f"{shown:.1f} {unit}"


def number_of(setting: str, text: str) -> str:
    """The text of a setting whose name ends in its unit (`.ms`, `.bytes`) as a number; any other text as it is.

    Raises ValueError for an amount whose unit is not valid.
    """
    parse = next((parse for end, parse in _PARSERS.items() if setting.endswith(end)), None)
    if parse is None or not _BEGINS_WITH_AN_AMOUNT.match(text.strip()):
        return text
    try:
        return str(parse(text))
    except ValueError as e:
        raise ValueError(f"{setting}={e}") from e


def _quantity(text: str, units: dict[str, int], forms: str) -> int:
    text = text.strip()
    number = int(text) if _is_number(text) else _sum(text, units)
    if number is None:
        raise _no(text, forms)
    return _bounded(number, text, forms)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= _DIGITS_MAX


def _sum(text: str, units: dict[str, int]) -> int | None:
    """All amounts with their units together, None where the text is anything else or no whole number."""
    if not _AMOUNTS.fullmatch(text):
        return None
    from fractions import Fraction  # with decimal, it takes a moment to load, and every command imports this module

    amounts = re.findall(_AMOUNT, text, re.IGNORECASE | re.ASCII)
    if any(unit.lower() not in units for _, unit in amounts):
        return None
    total = sum(Fraction(number) * units[unit.lower()] for number, unit in amounts)
    return int(total) if total == int(total) else None


def _bounded(number: int, text: str, forms: str) -> int:
    if not 0 <= number <= _INT64_MAX:
        raise ValueError(f"{text!r} is {'before 1970' if forms is TIMES and number < 0 else 'too large'}; expected {forms}")
    return number


_BEGINS_WITH_AN_AMOUNT: Final = re.compile(r"[0-9.]+\s*(?!e[+-]?[0-9])[a-z]", re.IGNORECASE | re.ASCII)  # 1e3 is a number
_PARSERS: Final = {
    ".ms": parse_duration,
    ".bytes.per.second": parse_rate,
    ".bytes": parse_size,
    ".buffer.size": parse_size,
    ".cache.size": parse_size,
}
"""By the end of a setting's name."""


def _no(text: str, forms: str) -> ValueError:
    return ValueError(f"{text!r} is not valid; expected {forms}")
