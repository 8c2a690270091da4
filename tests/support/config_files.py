"""Configurations for tests: files of their own, and what is wrong with one."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from local_log.os_disk import OsDisk
from tiering.config.assignment import BadConfig
from tiering.config.config import Config
from tiering.config.load import load_config

NONE: Mapping[str, str] = {}


def written(folder: Path, text: str | bytes, name: str = "tiering.toml") -> str:
    file = folder / name
    file.write_bytes(text.encode() if isinstance(text, str) else text)
    return str(file)


def loaded(file: str | None, environment: Mapping[str, str] = NONE) -> Config:
    return load_config(file, environment, OsDisk())


def problems(file: str | None, environment: Mapping[str, str] = NONE) -> list[str]:
    """What is told, without the folder of the file."""
    with pytest.raises(BadConfig) as caught:
        loaded(file, environment)
    folder = f"{Path(file).parent}/" if file else ""
    return [line.removeprefix(folder) for line in str(caught.value).splitlines()]
