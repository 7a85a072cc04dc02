"""The suspect as playbooks see it."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Suspect(BaseModel):
    """A patch under suspicion.

    Attributes:
        id: its name.
        title: what it claims to do.
        files: files it touches, relative to the clone's root where they could be matched to it.
        changed: its added and removed lines, one a line, without their marks.
        patch: the id under which `diff` tells its changes from other patches'; null when there is no patch file.
        is_source: there is no patch: the source as a whole is under suspicion.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    id: str
    title: str = ""
    files: list[str] = []
    changed: str = ""
    patch: str | None = None
    is_source: bool = False
