"""The Terraform modules as values: their blocks as they are parsed, and their policies as Terraform renders them."""

import json
from functools import cache
from pathlib import Path
from string import Template
from typing import Any

import hcl2

ROOT = Path(__file__).parents[2] / "terraform"
MODULES = ("bucket", "iam", "monitoring")
EXAMPLES = ("minimal", "complete")

REGION = "eu-central-1"
ACCOUNT = "111122223333"
BUCKET_KEY = f"arn:aws:kms:{REGION}:{ACCOUNT}:key/bucket"
DATA_KEY = f"arn:aws:kms:{REGION}:{ACCOUNT}:key/data"

Block = dict[str, Any]
Document = dict[str, Any]


def folder(name: str) -> Path:
    """Where a module or an example lies."""
    return ROOT / ("modules" if name in MODULES else "examples") / name


@cache
def parsed(name: str) -> Block:
    """All blocks of a module by their kind, each with the labels that it has in front of it; strings without their quotes."""
    blocks: dict[str, list[Any]] = {}
    for file in sorted(folder(name).glob("*.tf")):
        for kind, found in hcl2.loads(file.read_text()).items():
            blocks.setdefault(kind, []).extend(found)
    return {kind: _plain(found) for kind, found in blocks.items()}


def _plain(value: Any) -> Any:
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {
            _plain(k): _plain(v) for k, v in value.items() if k not in ("__is_block__", "__comments__", "__inline_comments__")
        }
    if isinstance(value, str) and len(value) > 1 and value[0] == value[-1] == '"':
        return value[1:-1].replace('\\"', '"')
    return value


def labelled(name: str, kind: str) -> dict[str, Block]:
    """The variables or outputs of a module by name."""
    return {label: body for block in parsed(name).get(kind, []) for label, body in block.items()}


def resource(name: str, kind: str) -> Block:
    """The only resource of a kind."""
    [body] = [body for block in parsed(name)["resource"] if kind in block for body in block[kind].values()]
    found: Block = body
    return found


def text_of(name: str) -> str:
    """All that a module's files say."""
    return "\n".join(file.read_text() for file in sorted(folder(name).glob("*.tf")))


def templates(name: str) -> list[str]:
    """The names of a module's policies."""
    return sorted(file.name.removesuffix(".json.tftpl") for file in (folder(name) / "policies").glob("*.json.tftpl"))


def rendered(name: str, policy: str, bucket: str = "archive", prefix: str = "") -> Document:
    """A policy as Terraform renders it: our templates have nothing but names in `${…}`, which Python's fill in as well."""
    bucket_arn = f"arn:aws:s3:::{bucket}"
    names = {
        "bucket_arn": bucket_arn,
        "archive_arn": f"{bucket_arn}/{prefix}/" if prefix else f"{bucket_arn}/",
        "bucket_key_arn": BUCKET_KEY,
        "key_arn": BUCKET_KEY,
        "data_key_arns": json.dumps([DATA_KEY]),
        "account_root_arn": f"arn:aws:iam::{ACCOUNT}:root",
        "principals": json.dumps({"Service": ["ec2.amazonaws.com"]}),
    }
    text = (folder(name) / "policies" / f"{policy}.json.tftpl").read_text()
    document: Document = json.loads(Template(text).substitute(names))
    return document
