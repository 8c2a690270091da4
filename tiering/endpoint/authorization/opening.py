"""The file of ACLs out of settings."""

from collections.abc import Callable

from tiering.endpoint.authorization.acl_file import AclFile
from tiering.endpoint.authorization.authorizer import Authorizer
from tiering.endpoint.settings import ALLOW_EVERYONE, SUPER_USERS, Settings
from tiering.machine import CLOCK, local_disk, writable_disk


def open_acls(path: str | None, settings: Settings, report: Callable[[str], object]) -> AclFile | None:
    """The file, read once; None without a path. Raises LogError for one that cannot be used."""
    if path is None:
        return None
    super_users = frozenset(user.strip() for user in (settings[SUPER_USERS] or "").split(";") if user.strip())
    authorizer = Authorizer(super_users=super_users, allows_unbound=settings[ALLOW_EVERYONE])
    found = AclFile(local_disk(), writable_disk(), path, CLOCK, authorizer, report)
    found.load()
    return found
