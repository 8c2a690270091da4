"""What can go wrong with the archive, named by what to do about it.

    RemoteError
    ├── Unavailable     the store did not answer, and nothing was changed: retry later
    ├── Unknown         a write whose outcome nobody knows: read back before anything else, delete nothing
    ├── AlreadyExists   put-if-absent found the key taken: read it back
    ├── Conflict        somebody else committed first and our change no longer makes sense: reload
    ├── Fenced          a writer with a higher epoch has claimed the partition: stop
    ├── NotFound        no such object, topic or partition
    └── Invalid         an archive or setting that cannot be used as it stands: fix it
        ├── BadAddress  an address that names no store: correct it
        ├── NotOurs     a topic whose log a broker writes: no rows are added to it here
        ├── TopicDeleted    what was deleted from the archive stays so: leave it out
        ├── BadRange    bytes that an object does not have: of an object that a manifest names, it is damage
        ├── Newer       written by a newer version of ours: upgrade
        ├── NoKey       what is encrypted needs a key that is not at hand: give the key ring that has it
        └── WrongKey    a key of the right name is not the one that was used: give that one

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


class NotOurs(Invalid):
    """A topic whose log a broker writes: what was added to it here would be another history than the broker's."""

    def __init__(self, topic: str) -> None:
        super().__init__(topic)
        self.topic = topic

    def __str__(self) -> str:
        return (
            f"topic {self.topic} is archived from a broker's logs, and what was written to it here would fork its log; choose "
            "another topic, produce to that broker, or write to another archive"
        )


class TopicDeleted(Invalid):
    """A topic that was deleted from the archive under this id: nothing of it is archived any more."""


class BadRange(Invalid):
    """A range that is not inside its object."""


class Newer(Invalid):
    """What a newer version has written in a form that this one does not read."""


class NoKey(Invalid):
    """What is encrypted (`file`, an object key, where one is read) needs the key `key_id`; `reason` says what is at hand."""

    def __init__(self, key_id: str, reason: str, file: str = "") -> None:
        super().__init__(key_id, reason, file)
        self.key_id = key_id
        self.reason = reason
        self.file = file

    def __str__(self) -> str:
        return f"{_placed(self.file)}key {self.key_id!r} is needed: {self.reason}; give keys that have it"


class WrongKey(Invalid):
    """The key that `place` has as `key_id` is not the one that the data key of `file`, an object key, was wrapped with."""

    def __init__(self, key_id: str, place: str, file: str = "") -> None:
        super().__init__(key_id, place, file)
        self.key_id = key_id
        self.place = place
        self.file = file

    def __str__(self) -> str:
        return (
            f"{_placed(self.file)}key {self.key_id!r} of {self.place} does not unwrap the data key; give the key that had this "
            "id when it was wrapped, or, where that is the one, restore the manifest, whose wrapped key was changed"
        )


def _placed(file: str) -> str:
    return f"{file}: " if file else ""
