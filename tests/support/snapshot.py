"""Compare with a file under tests/snapshot/; `UPDATE_SNAPSHOTS=1` writes it instead."""

import os

from . import ROOT


def check(name: str, content: bytes) -> None:
    """Fail unless `content` is what tests/snapshot/<name> holds, byte for byte."""
    path = ROOT / "tests" / "snapshot" / name
    if os.environ.get("UPDATE_SNAPSHOTS"):
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content)
    assert content.decode() == path.read_bytes().decode(), f"{path} differs; UPDATE_SNAPSHOTS=1 writes it anew"
