"""The connection of type `tiering`: which archive, of which log directory, by which configuration, with keys from where.

    airflow connections add tiering_default --conn-type tiering \
      --conn-extra '{"archive": "s3://bucket/prefix", "log_dir": "/var/lib/kafka/data"}'

It holds no secret.
Credentials come to the worker as to every other program there: by AWS_… variables, a profile, a role.
"""

import os
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Final

from local_log.errors import Invalid
from tiering.airflow.provider_info import CONNECTION_TYPE
from tiering.airflow.sdk import AirflowNotFoundException, BaseHook
from tiering.config.shared import CONFIG_VARIABLE, KEYS_VARIABLE, VARIABLES

if TYPE_CHECKING:
    from remote.store.api import ObjectStore
    from tiering.api import Reader
    from tiering.config.config import Config

_VARIABLES: Final = {
    "archive": f"{VARIABLES}ARCHIVE_URL",
    "log_dir": f"{VARIABLES}LOG_DIRS",
    "config": CONFIG_VARIABLE,
    "keys": KEYS_VARIABLE,
}
WHERE_LOG_DIR: Final = "give one, as the field log_dir of the connection or the param log_dir of the DAG"


class TieringHook(BaseHook):
    """What a connection says, as commands and programs take it; without a connection, what the worker's environment says."""

    conn_name_attr = "tiering_conn_id"
    default_conn_name = "tiering_default"
    conn_type = CONNECTION_TYPE
    hook_name = "Kafka tiering"

    def __init__(self, tiering_conn_id: str | None = default_conn_name) -> None:
        super().__init__()
        self.tiering_conn_id = tiering_conn_id

    def environment(self) -> dict[str, str]:
        """The variables that tell a command what the connection says; they come before those of the worker.

        Raises Invalid for a field that there is none of, or a secret, and where there is no such connection.
        """
        if self.tiering_conn_id is None:
            return {}
        try:
            connection = self.get_connection(self.tiering_conn_id)
        except AirflowNotFoundException as e:
            raise Invalid(
                f"there is no connection {self.tiering_conn_id}; add it: airflow connections add {self.tiering_conn_id} "
                f'--conn-type {CONNECTION_TYPE} --conn-extra \'{{"archive": "…", "log_dir": "…"}}\''
            ) from e
        if connection.password or connection.login:
            raise Invalid(
                f"connection {self.tiering_conn_id} has a login or a password: secrets do not belong there; use the SDK's "
                "own variables (AWS_…), files or roles on the workers"
            )
        given = connection.extra_dejson
        for name in given:
            if name not in _VARIABLES:
                near = get_close_matches(name, _VARIABLES, 1)
                hint = f"did you mean {near[0]}?" if near else f"there are: {', '.join(_VARIABLES)}"
                raise Invalid(f"connection {self.tiering_conn_id}: {name}: no such field; {hint}")
        return {_VARIABLES[name]: str(value) for name, value in given.items() if value}

    def config(self) -> "Config":
        """The configuration that commands go by, read on this machine. Raises BadConfig and what `environment` raises."""
        from local_log.os_disk import OsDisk
        from tiering.config.load import load_config

        environment = {**os.environ, **self.environment()}
        return load_config(environment.get(CONFIG_VARIABLE), environment, OsDisk())

    def archive_url(self) -> str:
        """The archive's address. Raises Invalid if none is given, and what `config` raises."""
        url = self.config().settings.archive_url
        if url is None:
            raise Invalid(
                f"connection {self.tiering_conn_id} names no archive: give its field archive, or a configuration with it"
            )
        return url

    def keys(self) -> str | None:
        """Where the keys are, with what the configuration says of data in the clear. Raises what `config` raises."""
        from remote.transforms.key_rings import allowing_plain

        settings = self.config().settings
        keys = settings.archive_keys
        return keys if keys is None or settings.archive_encryption_required else allowing_plain(keys)

    def log_dir(self, given: str | None) -> str | None:
        """The folder that a task reads: what it is given, else what the connection or the configuration says, else None.

        Raises Invalid where there are several, or no such folder on this machine, and what `config` raises.
        """
        from local_log.os_disk import OsDisk

        folders = (given,) if given else self.config().settings.log_dirs
        if len(folders) > 1:
            raise Invalid(f"the configuration has {len(folders)} log.dirs: {WHERE_LOG_DIR}")
        for folder in folders:
            if not OsDisk().is_folder(folder):
                where = f"there is no folder {folder} on the worker {os.uname().nodename}"
                raise Invalid(f"{where}: correct log_dir, or give the DAG the queue of a worker on the host that has it")
        return folders[0] if folders else None

    def store(self) -> "ObjectStore":
        """The archive's store; nothing is asked of it yet."""
        from remote.store.open import open_store

        return open_store(self.archive_url())

    def get_conn(self) -> "Reader":
        """The archive for programs: topics, coverage, records as Arrow; see `tiering.open_reader`."""
        from tiering import open_reader

        settings = self.config().settings
        return open_reader(archive=self.archive_url(), cache_dir=settings.archive_cache_dir, keys=self.keys())

    def test_connection(self) -> tuple[bool, str]:
        """Whether there is an archive, for the button of that name."""
        from remote import archive

        try:
            store = self.store()
            archive.open_archive(store)
        except Exception as e:  # whatever it is, the one who pressed the button is to read it
            return False, str(e)
        return True, f"{store.url} is an archive"

    @classmethod
    def get_ui_field_behaviour(cls) -> dict[str, Any]:
        """As the provider's description has it, for Airflow before 3.2."""
        from tiering.airflow.provider_info import get_provider_info

        behaviour: dict[str, Any] = get_provider_info()["connection-types"][0]["ui-field-behaviour"]
        return {name.replace("-", "_"): value for name, value in behaviour.items()}
