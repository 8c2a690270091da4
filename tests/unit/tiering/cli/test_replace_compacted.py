"""`tiering offload --replace-compacted`: what the log cleaner has compacted takes the place of what is archived."""

import json
from pathlib import Path

from keyed_logs import KeyedLog
from offloaded import Rows


def test_the_command_replaces_what_the_option_or_the_setting_names(rows: Rows, tmp_path: Path) -> None:
    log = KeyedLog(tmp_path / "logs")
    log.fill(4)
    log.replicate()
    given = ("offload", "--log-dir", log.root, "--archive", tmp_path / "archive", "--state-dir", tmp_path / "state")
    assert {row["action"] for row in rows(*given)} == {"copied", "keep"}
    log.clean()
    assert {row["action"] for row in rows(*given)} == {"archived", "keep"}
    assert {row["action"] for row in rows(*given, "--replace-compacted", "k*", "--dry-run")} == {"replace", "keep"}
    config = tmp_path / "tiering.toml"
    config.write_text(f"archive.replace.compacted = {json.dumps(['keyed'])}\n")
    replaced = rows(*given, "--config", config)
    assert {row["action"] for row in replaced} == {"replaced", "keep"}
    assert [row["bytes"] for row in replaced if row["action"] == "replaced"] == [
        log.segment(row["segment"]).stat().st_size for row in replaced if row["action"] == "replaced"
    ]
    assert {row["action"] for row in rows(*given, "--config", config)} == {"archived", "keep"}
    log.log.close()
