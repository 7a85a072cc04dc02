"""Which worlds a patch can matter in: those that come to code which it changed, where that makes a difference."""

from __future__ import annotations

from dataclasses import dataclass, field

Cubes = list[dict[str, tuple[str, ...]]]


@dataclass
class Focus:
    """What the engine watches for.

    Attributes:
        functions: (path, qualified name) of functions that differ, each with the conditions on its parameters under
            which it makes a difference: alternatives, each a parameter's truth by its name; None for always.
        classes: (path, name) of classes with such functions: making one leads there.
    """

    functions: dict[tuple[str, str], Cubes | None] = field(default_factory=dict)
    classes: set[tuple[str, str]] = field(default_factory=set)
