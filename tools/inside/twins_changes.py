"""What a patch changed in twins: the same in each of them, or in some only."""

from __future__ import annotations

import ast
import re
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from .definitions import Named
from .paths import to_shown
from .twins_code import Code, Routine, without_docstring
from .twins_groups import Group

if TYPE_CHECKING:
    from .twins import Side

Lines = tuple[Counter[str], Counter[str]]
"""Statements and conditions that went, and that came."""


@dataclass
class Edits:
    """The changed functions.

    Attributes:
        same: groups of which every member was changed by the very same lines.
        lone: changed functions that aren't in such a group, and module-level changes.
        renamed: present names of functions by their earlier ones.
    """

    same: list[dict[str, Any]] = field(default_factory=list)
    lone: list[dict[str, Any]] = field(default_factory=list)
    renamed: dict[str, str] = field(default_factory=dict)


def edits(now: Side, before: Side) -> Edits:
    """Compare each function with its former self."""
    found = Edits()
    for path in dict.fromkeys([*now.codes, *before.codes]):
        new, old = now.codes.get(path), before.codes.get(path)
        if new is None or old is None:
            found.lone.append({"file": to_shown(path), "name": "", "line": 1, "twins": []})
            continue
        found.renamed |= _renamed(new, old)
        changed = _changed(new, old)
        groups = [g for g in now.groups if g.path == path and g.close]
        _sort(found, new, old, changed, groups)
    return found


def _renamed(new: Code, old: Code) -> dict[str, str]:
    gone = {r.body_text: n for n, r in old.routines.items() if n not in new.routines}
    return {gone[r.body_text]: n for n, r in new.routines.items() if n not in old.routines and r.body_text in gone}


def _changed(new: Code, old: Code) -> dict[str, Lines]:
    """Functions whose code differs, with the lines; what stands outside functions counts as one, without a name."""
    names = dict.fromkeys([*new.routines, *old.routines])
    found = {}
    for name in names:
        lines = _lines(old.routines.get(name)), _lines(new.routines.get(name))
        if lines[0] != lines[1]:
            found[name] = (lines[0] - lines[1], lines[1] - lines[0])
    outside = _outside(old), _outside(new)
    if outside[0] != outside[1]:
        found[""] = (outside[0] - outside[1], outside[1] - outside[0])
    return found


def _lines(routine: Routine | None) -> Counter[str]:
    """The code of a function line by line, as the parser spells it: what moves under a condition has changed."""
    if routine is None:
        return Counter()
    body = ast.Module(list(without_docstring(routine.node.body)), [])
    heads = [ast.unparse(routine.node.args), *(ast.unparse(each) for each in routine.node.decorator_list)]
    return Counter([*heads, *_unparsed(body)])


def _outside(code: Code) -> Counter[str]:
    kept = [node for node in code.tree.body if not isinstance(node, Named)]
    classes = [node for node in ast.walk(code.tree) if isinstance(node, ast.ClassDef)]
    inner = [each for node in classes for each in without_docstring(node.body) if not isinstance(each, Named)]
    heads = [ast.unparse(each) for node in classes for each in (*node.bases, *node.decorator_list)]
    return Counter([*heads, *_unparsed(ast.Module([*without_docstring(kept), *inner], []))])


def _unparsed(body: ast.Module) -> list[str]:
    try:
        return [line.rstrip() for line in ast.unparse(body).split("\n") if line.strip()]
    except (RecursionError, ValueError):
        return ["(code nested too deep to print)"]


def _sort(found: Edits, new: Code, old: Code, changed: dict[str, Lines], groups: list[Group]) -> None:
    """Into groups changed alike, and the rest."""
    alike: set[str] = set()
    for group in groups:
        names = [r.qualname for member in group.members for r in member.routines]
        lines = [changed.get(name) for name in names]
        if lines[0] is not None and all(each == lines[0] for each in lines):
            alike |= set(names)
            said = _names(new, [*lines[0][0], *lines[0][1]])
            others = [
                n for n, r in new.routines.items() if n not in names and _loads(r) & set(said) and r.name != "__init__"
            ]
            found.same.append({"file": to_shown(group.path), "members": names, "names": said, "others": others})
    for name in changed:
        if name not in alike:
            routine = new.routines.get(name) or old.routines.get(name)
            twins = [m.name for g in groups if any(_is(name, m.routines) for m in g.members) for m in g.members]
            line = routine.node.lineno if routine else 1
            found.lone.append({"file": to_shown(new.path), "name": name, "line": line, "twins": twins})


def _names(code: Code, lines: list[str]) -> list[str]:
    """Attributes and module-level names in statements, the first line of a compound one included."""
    words = [word for line in lines for word in re.findall(r"(\.?)\b([A-Za-z_]\w*)", line)]
    return list(dict.fromkeys(name for dot, name in words if dot or name in code.globals))


def _loads(routine: Routine) -> set[str]:
    loads = [n for n in ast.walk(routine.node) if isinstance(getattr(n, "ctx", None), ast.Load)]
    return {n.attr if isinstance(n, ast.Attribute) else n.id for n in loads if isinstance(n, (ast.Attribute, ast.Name))}


def _is(name: str, routines: list[Routine]) -> bool:
    return any(routine.qualname == name for routine in routines)
