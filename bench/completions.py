"""What a shell waits for when it completes a command, an option or a topic: CPU seconds, the best of some rounds."""

import subprocess
from collections.abc import Mapping
from pathlib import Path

import strict_s3  # beside the tests
from processes import cpu_seconds, environment_of, tiering  # beside this file
from stores import client_of  # beside this file

SECONDS_MAX = 0.10
S3_FIRST = "a topic, S3, the first time"


def seconds(out: Path, modules: Path, topic: str, archive: Path, config: Path, rounds: int) -> dict[str, float]:
    """By what is completed. S3 is asked the first time only; the process that does it counts, too."""
    out.mkdir(parents=True)
    asked = {
        "a command": ("tiering describ", "describe"),
        "an option": ("tiering fetch --from-t", "--from-time"),
        "a topic, folder": (f"tiering fetch --archive {archive} --topic ", topic),
        "a topic, configuration": (f"tiering fetch --config {config} --topic ", topic),
    }
    found = {what: _best(*of, environment_of(modules), rounds) for what, of in asked.items()}
    if strict_s3.available():
        with strict_s3.serving(out / "versitygw") as url:
            client = client_of(url)
            client.put_object(Bucket="bench", Key="completed/orders/one")
            client.close()
            kept = environment_of(modules, XDG_CACHE_HOME=str(out / "cache"))
            words = "tiering fetch --archive s3://bench/completed --topic "
            found[S3_FIRST] = _cpu(words, kept)
            found["a topic, S3, from then on"] = _best(words, "orders", kept, rounds)
    return found


def _best(words: str, offered: str, environment: Mapping[str, str], rounds: int) -> float:
    told = subprocess.run(tiering(), env=_asked(words, environment), check=True, capture_output=True, text=True).stdout
    if told.split() != [f"plain,{offered}"]:
        raise AssertionError(f"{words}: {told!r} is offered, not {offered}")
    return min(_cpu(words, environment) for _ in range(rounds))


def _cpu(words: str, environment: Mapping[str, str]) -> float:
    return cpu_seconds(tiering(), _asked(words, environment))


def _asked(words: str, environment: Mapping[str, str]) -> dict[str, str]:
    """As bash asks for the last one of some words."""
    return {**environment, "_TIERING_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
