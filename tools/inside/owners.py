"""Which mentions of an attribute belong to the class that a dotted symbol names."""

from __future__ import annotations

from .definitions import Definition
from .graph import Explorer, Visit
from .occurrences import Occurrence


class Owner:
    """A class by name, with the classes of the trace that it inherits from or that inherit from it."""

    def __init__(self, name: str, explorer: Explorer, visits: list[Visit]) -> None:
        self.name = name
        self._related: set[tuple[str, str]] = set()
        for visit in visits:
            for definition in _classes(visit.definition):
                lineage = [t.definition for t in explorer.lineage(definition)]
                if any(_last(d.qualname) == name for d in lineage):
                    own = lineage if _last(definition.qualname) == name else [definition]
                    self._related |= {(d.module.path, d.qualname) for d in own}

    def has(self, item: Occurrence) -> bool:
        """Whether a mention stands in one of those classes, or names the class itself."""
        parts = item.scope.split(".")
        scopes = {(item.file, ".".join(parts[:n])) for n in range(1, len(parts) + 1)}
        if scopes & self._related:
            return True
        called = item.detail.partition("(")[0] if item.kind == "keyword_argument" else item.receiver
        return _last(called) == self.name


def _last(name: str) -> str:
    return name.rpartition(".")[2]


def _classes(definition: Definition) -> list[Definition]:
    """The class itself, or the top-level classes of a module that was entered whole."""
    if definition.kind == "class":
        return [definition]
    if definition.kind == "function":
        return [definition.owner] if definition.owner else []
    bindings = definition.module.bindings if definition.kind == "module" else {}
    inner = [b.source for found in bindings.values() for b in found if b.kind == "definition"]
    found = [definition.scope.definition(source) for source in inner]
    return [one for one in found if one.kind == "class"]
