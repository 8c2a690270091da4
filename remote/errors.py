"""What can go wrong with the archive, named by what to do about it.

    RemoteError
    ├── Unavailable     the store did not answer, and nothing was changed: retry later
    ├── Unknown         a write whose outcome nobody knows: read back before anything else, delete nothing
    ├── AlreadyExists   put-if-absent found the key taken: read it back
    ├── Conflict        somebody else committed first and our change no longer makes sense: reload
    ├── Fenced          a writer with a higher epoch has claimed the partition: stop
    ├── NotFound        no such object, topic or partition
    └── Invalid         an archive or setting that cannot be used as it stands: fix it
        └── BadAddress  an address that names no store: correct it

Bytes that are not what they should be raise `local_log.errors.Corrupt`, with the object key as its file.
"""


class RemoteError(Exception):
    """Base of everything that this package raises on purpose."""


class Unavailable(RemoteError):
    """The store did not answer, and nothing was changed there."""


class Unknown(RemoteError):
    """A write that may or may not have happened."""


class AlreadyExists(RemoteError):
    """Put-if-absent found the key taken; the first argument is the key."""


class Conflict(RemoteError):
    """Another commit came first and ours no longer applies."""


class Fenced(RemoteError):
    """A writer with a higher writer epoch owns this partition now."""


class NotFound(RemoteError):
    """No such object, topic or partition."""


class Invalid(RemoteError):
    """An archive or setting that cannot be used as it stands."""


class BadAddress(Invalid):
    """An address that names no store, or one that cannot be used from here; the message says what would do."""
