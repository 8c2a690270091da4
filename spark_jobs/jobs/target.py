"""Where jobs write: any fsspec URL. A file appears whole or not at all, and writing it again replaces it by the same."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from tempfile import TemporaryDirectory
from typing import Any

import fsspec

from spark_jobs.source.options import OptionError


@dataclass(frozen=True, slots=True)
class Target:
    """A folder at an fsspec URL; names below it are relative, with "/" between their parts."""

    url: str

    def names(self, suffix: str) -> set[str]:
        """The files below the folder whose names end with `suffix`."""
        files, root = self._open()
        found = (file.removeprefix(root).lstrip("/") for file in files.find(root))
        return {name for name in found if name.endswith(suffix) and not name.rpartition("/")[2].startswith((".", "_"))}

    def write(self, name: str, attempt: str, fill: Callable[[str], None]) -> int:
        """Has `fill` write a local file and puts it in place as `name`; gives its bytes. `attempt` is nobody else's.

        An object store shows an object when it is complete. A local folder does so by renaming.
        """
        files, root = self._open()
        final = f"{root}/{name}"
        if _is_local(files):
            folder, _, base = final.rpartition("/")
            os.makedirs(folder, exist_ok=True)
            temporary = f"{folder}/.{base}.{attempt}"
            try:
                fill(temporary)
                os.replace(temporary, final)
            finally:
                if os.path.exists(temporary):
                    os.unlink(temporary)
            return os.path.getsize(final)
        with TemporaryDirectory() as folder:
            local = f"{folder}/part"
            fill(local)
            files.put_file(local, final)
            return os.path.getsize(local)

    def _open(self) -> tuple[Any, str]:
        try:
            files, root = fsspec.core.url_to_fs(self.url, use_listings_cache=False, skip_instance_cache=True)
        except (ValueError, ImportError) as e:  # a protocol that nobody knows, or whose package is not there
            raise OptionError(f"the target {self.url!r} cannot be used: {e}") from e
        if not root.strip("/"):
            raise OptionError(f"the target {self.url!r} names no folder; give one, such as s3://bucket/prefix")
        return files, root.rstrip("/")


def _is_local(files: Any) -> bool:
    protocol = files.protocol
    return "file" in ((protocol,) if isinstance(protocol, str) else protocol)
