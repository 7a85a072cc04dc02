"""One manager of diagrams for two states of a tree, so that a world before is the same world after."""

from __future__ import annotations

import zlib

from .diagram import Diagrams, Guard


class Together(Diagrams):
    """Diagrams of two trees: a guard that has other values in the other tree is another guard."""

    def guard(
        self, key: str, values: tuple[str, ...] = ("true", "false"), name: str = "", path: str = "", line: int = 0
    ) -> Guard:
        """See `Diagrams.guard`."""
        known = self.guards.get(key)
        if known is not None and known.values != values:
            return super().guard(f"{key} among {zlib.crc32(repr(values).encode()):x}", values, name or key, path, line)
        return super().guard(key, values, name, path, line)
