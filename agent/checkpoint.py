"""LangGraph's checkpoint in the case folder. The event log holds everything that was done, so this one may be lost."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import ChannelVersions, Checkpoint, CheckpointMetadata
from langgraph.checkpoint.sqlite import SqliteSaver

WAL_PAGES = 32
"""Pages of write-ahead log before it is folded into the database and overwritten from its start."""


class LastOnly(SqliteSaver):
    """Keeps the newest checkpoint: an older one is of no use, since the log can't be taken back."""

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Save a checkpoint and drop those before it, in one transaction each."""
        stored = super().put(config, checkpoint, metadata, new_versions)
        place = (str(config["configurable"]["thread_id"]), config["configurable"]["checkpoint_ns"], checkpoint["id"])
        with self.cursor() as cursor:
            for table in ("checkpoints", "writes"):
                where = "thread_id = ? AND checkpoint_ns = ? AND checkpoint_id < ?"
                cursor.execute(f"DELETE FROM {table} WHERE {where}", place)
        return stored


@contextlib.contextmanager
def checkpoints(path: Path, case: str) -> Iterator[LastOnly]:
    """The case's checkpoints; a file that a crash, a full disk or an edit left unreadable is begun anew.

    It is written without fsync: what a power cut does to it is found here, and costs nothing but a few steps that find
    their work done.
    """
    if not _readable(path, case):
        for name in (path, path.with_name(f"{path.name}-wal"), path.with_name(f"{path.name}-shm")):
            name.unlink(missing_ok=True)
    with contextlib.closing(_open(path)) as connection:
        yield LastOnly(connection)


def _readable(path: Path, case: str) -> bool:
    try:
        with contextlib.closing(_open(path)) as connection:
            LastOnly(connection).get_tuple({"configurable": {"thread_id": case, "checkpoint_ns": ""}})
            return bool(connection.execute("PRAGMA quick_check").fetchone() == ("ok",))
    except Exception:  # noqa: BLE001 - whatever is wrong with it, there is one cure
        return False


def _open(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, check_same_thread=False)
    try:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = OFF")
        connection.execute(f"PRAGMA wal_autocheckpoint = {WAL_PAGES}")
    except BaseException:
        connection.close()
        raise
    return connection
