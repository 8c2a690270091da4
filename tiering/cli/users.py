"""`tiering users`: who may authenticate at `tiering serve`."""

import sys
from typing import TYPE_CHECKING

import click

from local_log.errors import NotFound
from tiering.command.completion import files
from tiering.command.exit_codes import reports_errors
from tiering.command.options import Number, named, output_option
from tiering.command.output import emit, say
from tiering.endpoint.authentication.scram import ITERATIONS, MECHANISMS
from tiering.endpoint.protocol.messages.scram_credentials import ITERATIONS_MAX, ITERATIONS_MIN
from tiering.machine import RANDOMNESS, writable_disk

if TYPE_CHECKING:
    from local_log.disk import WritableDisk
    from tiering.endpoint.authentication.users import Credentials

_file = click.option(
    "--users", "path", required=True, callback=named, shell_complete=files, metavar="FILE", help="The file of users."
)


@click.group("users")
def command() -> None:
    """Manage the file of users that authenticate at tiering serve. It holds no passwords, only what SCRAM verifies them with."""


@command.command("set")
@click.argument("name")
@_file
@click.option(
    "--mechanism",
    "mechanisms",
    multiple=True,
    type=click.Choice(list(MECHANISMS)),
    default=tuple(MECHANISMS),
    show_default=True,
    help="For which mechanisms; may be given several times. PLAIN takes any.",
)
@click.option(
    "--iterations",
    type=Number(ITERATIONS_MIN, ITERATIONS_MAX),
    default=ITERATIONS,
    show_default=True,
    metavar="N",
    help=f"How often the password is hashed, {ITERATIONS_MIN} to {ITERATIONS_MAX} times.",
)
@reports_errors
def set_(name: str, path: str, mechanisms: tuple[str, ...], iterations: int) -> None:
    """Add the user NAME, or change its password, which is asked for, or read from standard input if that is no terminal.

    \b
    Examples:
      tiering users set alice --users users.json
      tiering users set alice --users users.json --mechanism SCRAM-SHA-512
    """
    from tiering.endpoint.authentication.scram import SALT_BYTES, ScramCredential
    from tiering.endpoint.authentication.users import save_users
    from tiering.endpoint.watched_file import changing

    if not (name.isascii() and name.isprintable() and name.strip()):
        raise click.UsageError(f"{name!r} is no name of a user: printable ASCII characters only")
    password = _password()
    disk = writable_disk()
    of: dict[str, ScramCredential] = {}
    for mechanism in mechanisms:
        salt = RANDOMNESS.random_bytes(SALT_BYTES)
        of[mechanism] = ScramCredential.of(MECHANISMS[mechanism], password, salt, iterations)
    with changing(disk, path):
        users = _read(disk, path)
        save_users(disk, path, {**users, name: of})
    say(f"tiering: user {name} is {'changed' if name in users else 'added'}")


@command.command("delete")
@click.argument("name")
@_file
@reports_errors
def delete(name: str, path: str) -> None:
    """Delete the user NAME. Connections that it has live on, until connections.max.reauth.ms if that is set.

    \b
    Examples:
      tiering users delete alice --users users.json
    """
    from tiering.endpoint.authentication.users import save_users
    from tiering.endpoint.watched_file import changing

    disk = writable_disk()
    with changing(disk, path):
        users = _read(disk, path)
        if name not in users:
            raise NotFound(f"{path} has no user {name}; `tiering users list` lists them")
        save_users(disk, path, {other: of for other, of in users.items() if other != name})
    say(f"tiering: user {name} is deleted")


@command.command("list")
@_file
@output_option()
@reports_errors
def list_(path: str, output: str) -> None:
    """List the users and their mechanisms.

    \b
    Examples:
      tiering users list --users users.json
    """
    from tiering.endpoint.authentication.users import read_users

    users = read_users(writable_disk().read(path))
    emit(
        (
            {"user": name, "mechanism": mechanism, "iterations": one.iterations}
            for name, of in sorted(users.items())
            for mechanism, one in sorted(of.items())
        ),
        output,
    )


def _password() -> str:
    if sys.stdin.isatty():
        password: str = click.prompt("Password", hide_input=True, confirmation_prompt=True, err=True)
    else:
        password = sys.stdin.readline().rstrip("\r\n")
    if not password:
        raise click.UsageError("the password is empty; write it on the first line of standard input")
    return password


def _read(disk: "WritableDisk", path: str) -> "dict[str, Credentials]":
    from tiering.endpoint.authentication.users import read_users

    return read_users(disk.read(path)) if disk.exists(path) else {}
