"""Parameters, attributes and fields that are accepted and then take no part in what is computed."""

from __future__ import annotations

import ast
import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from .collecting import no_collection
from .dead_parameter_branches import Dropped, dropped
from .dead_parameter_reads import Parameter, attribute_loads, exempt, parameters, swallowed
from .dead_parameter_tree import Around, class_of
from .fail import InsideError
from .imports import dotted_parts
from .paths import to_shown
from .source import Tree
from .twins import targets_of
from .twins_code import Code, Routine, read_code
from .twins_groups import stem

CONFIDENCE = ("high", "medium", "low")
SAID = {
    "never": ("never_read", "accepted and never read"),
    "checked": (
        "only_checked",
        "only asserted, logged or tested before an error; it takes no part in what is computed",
    ),
    "overwritten": ("overwritten", "overwritten before it is read"),
}
RECORDS = frozenset("dataclass attrs define frozen attr pydantic_dataclass".split())
RECORD_BASES = frozenset("BaseModel Struct NamedTuple".split())


@dataclass
class Finding:
    """One thing that is accepted and not used, as `dead_parameter` documents it."""

    kind: str
    name: str
    scope: str
    file: str
    line: int
    end_line: int
    why: str
    confidence: str
    siblings: list[dict[str, Any]] = field(default_factory=list)
    required: str = ""
    parts: list[str] = field(default_factory=list)
    where: str = ""

    @property
    def keys(self) -> list[tuple[str, ...]]:
        """What makes it the same finding before and after a patch; several branches of a function may share them."""
        return [(self.kind, self.file, self.scope, self.name, part) for part in self.parts or [""]]


@dataclass
class Side:
    """One of the two states of the examined files, with the tree around them."""

    tree: Tree
    around: Around
    words: set[str]
    codes: dict[str, Code] = field(default_factory=dict)
    unread: list[dict[str, str]] = field(default_factory=list)
    found: list[Finding] = field(default_factory=list)
    blind: list[dict[str, Any]] = field(default_factory=list)
    examined: int = 0

    def read(self, targets: list[tuple[str, str]]) -> None:
        """Parse the files and examine every function in them."""
        for path, name in targets:
            code, why = read_code(self.tree, path)
            if code is None:
                self.unread.append({"file": to_shown(path), "reason": why})
                continue
            self.codes[path] = code
            inside = [r for q, r in code.routines.items() if not name or q == name or q.startswith(f"{name}.")]
            if name and not inside and name not in code.bases:
                raise InsideError(f"{to_shown(path)} defines no {name}; it has {', '.join([*code.bases][:8])}")
            for routine in inside:
                self._routine(code, routine)
            self._attributes(code, inside)
            self._fields(code, name)

    def _routine(self, code: Code, routine: Routine) -> None:
        why = exempt(routine)
        fates = parameters(routine)
        self.examined += len(fates)
        if why == "reads all its names at once":
            row = {"file": to_shown(code.path), "line": routine.node.lineno, "scope": routine.qualname, "why": why}
            self.blind.append(row)
        if why:
            return
        for fate in fates:
            if fate.state != "read":
                self._add(self._dead(code, routine, fate))
        extra = swallowed(routine)
        if extra is not None:
            why = "whatever else is passed is accepted and thrown away"
            self._add(_finding("kwargs_swallowed", extra.name, code, routine, extra.line, why, "low"))
        for each in dropped(code, routine):
            self._branch(code, routine, each)

    def _add(self, found: Finding) -> None:
        if not self.words or found.name.rpartition(".")[2] in self.words:
            self.found.append(found)

    def _dead(self, code: Code, routine: Routine, fate: Parameter) -> Finding:
        kind, why = SAID[fate.state]
        found = _finding(kind, fate.name, code, routine, fate.line, why, "medium")
        found.siblings = list(_users(code, routine, fate.name))
        found.required = self._required(code, routine, fate.name)
        if found.required:
            found.confidence, found.why = "low", f"{why}; but the signature is set by {found.required}"
        elif found.siblings and kind != "only_checked":
            found.confidence = "high"
        return found

    def _required(self, code: Code, routine: Routine, name: str) -> str:
        """Whose interface demands the parameter; empty when nobody's is known to."""
        if routine.owner and routine.name not in ("__init__", "__new__"):
            base = self.around.required_by(code.path, routine.owner, routine.name, name)
            if base:
                return f"the base class {base}"
            others = [r for r in code.routines.values() if r.name == routine.name and r.owner and r is not routine]
            same = [r for r in others if name in r.parameters and _related(code, routine.owner, r.owner)]
            if same:
                return f"its sibling {same[0].qualname}, called in the same way"
        line = code.handed_on.get((bool(routine.owner), routine.name), 0)
        return f"whoever calls it back: it is handed on at line {line}" if line else ""

    def _branch(self, code: Code, routine: Routine, each: Dropped) -> None:
        last = each.value.rpartition(".")[2]
        line, text = each.siblings[0]
        if each.read:
            left = self._left_behind(each, last)
            confidence = "medium"
            why = (
                f"this branch reads only {', '.join(each.read)} of {each.value}, which its sibling at line {line} "
                f"hands on whole: {text}; left behind: {', '.join(left)}"
            )
        else:
            left = [last] if not self.words or {last, each.value} & self.words else []
            confidence = "medium" if each.most and len(each.shared) > 2 else "low"
            why = f"this branch doesn't hand on {each.value}, which its sibling at line {line} does: {text}"
        if left:
            kind = "left_behind" if each.read else "dropped_on_branch"
            found = _finding(kind, each.value, code, routine, each.line, why, confidence)
            found.end_line, found.where, found.parts = each.end, each.when, left if each.read else []
            place = {"file": to_shown(code.path), "name": routine.qualname}
            found.siblings = [{**place, "line": at, "text": said} for at, said in each.siblings]
            self.found.append(found)

    def _left_behind(self, each: Dropped, last: str) -> list[str]:
        """Fields of the class that the object's name suggests, which the branch doesn't read."""
        fields = self.around.fields(class_of(last)) if "_" in last.strip("_") else {}
        read = {part.partition(".")[0] for part in each.read}
        return [name for name in fields if name not in read and (not self.words or {name, last} & self.words)]

    def _attributes(self, code: Code, routines: list[Routine]) -> None:
        """Attributes that only keep a parameter, and that nobody reads."""
        kept: dict[str, tuple[Routine, Parameter]] = {}
        loads = attribute_loads(ast.walk(code.tree))
        for routine in routines:
            for fate in parameters(routine) if not exempt(routine) else []:
                for name in fate.stored:
                    if name not in loads and (not self.words or {name, fate.name} & self.words):
                        kept.setdefault(name, (routine, fate))
        owners = {name: routine.owner for name, (routine, _) in kept.items()}
        readers = self.around.readers(set(kept), owners)
        for name, (routine, fate) in kept.items():
            every, related = readers[name]
            if related:
                continue
            why = f"stored as self.{name}, which nothing in its file reads"
            why += f"; other files read an attribute of that name, none of which names {routine.owner}" if every else ""
            found = _finding(
                "stored_never_read", fate.name, code, routine, fate.line, why, "medium" if every else "high"
            )
            found.siblings = list(_users(code, routine, fate.name))
            self.found.append(found)

    def _fields(self, code: Code, name: str) -> None:
        """Fields of records that nothing in the tree reads."""
        loads = attribute_loads(ast.walk(code.tree))
        open_fields: dict[str, tuple[str, int]] = {}
        for node in ast.walk(code.tree):
            if isinstance(node, ast.ClassDef) and _is_record(node) and (not name or node.name == name.split(".")[0]):
                for each in node.body:
                    if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name):
                        self.examined += 1
                        known = each.target.id in loads or each.target.id.startswith("_")
                        if not known and (not self.words or each.target.id in self.words):
                            open_fields.setdefault(each.target.id, (node.name, each.lineno))
        readers = self.around.readers(set(open_fields), {n: owner for n, (owner, _) in open_fields.items()})
        whole = any(
            isinstance(n, ast.Name) and n.id in ("asdict", "vars", "fields", "astuple") for n in ast.walk(code.tree)
        )
        for field_name, (owner, line) in open_fields.items():
            if not readers[field_name][0]:
                why = f"no file of the tree reads a field {field_name}"
                why += "; but records are unpacked as a whole here" if whole else ""
                confidence = "low" if whole else "medium"
                self.found.append(
                    Finding("field_never_read", field_name, owner, to_shown(code.path), line, line, why, confidence)
                )


def _finding(kind: str, name: str, code: Code, routine: Routine, line: int, why: str, confidence: str) -> Finding:
    return Finding(kind, name, routine.qualname, to_shown(code.path), line, line, why, confidence)


def _users(code: Code, routine: Routine, name: str) -> Iterator[dict[str, Any]]:
    """Functions like this one – the same name or job in the same file – that take the parameter and read it."""
    for other in code.routines.values():
        alike = other.name == routine.name or (other.owner == routine.owner and stem(other.name) == stem(routine.name))
        if other is routine or not alike or not stem(other.name) or name not in other.parameters:
            continue
        fate = next((f for f in parameters(other) if f.name == name), None)
        if fate is not None and fate.state == "read":
            lines = {"file": to_shown(code.path), "line": fate.uses[0], "name": other.qualname}
            yield {**lines, "text": code.lines[fate.uses[0] - 1].strip()[:200]}


def _related(code: Code, one: str, other: str) -> bool:
    """Whether two classes share a base, or one inherits the other."""
    mine, theirs = set(code.bases.get(one, [])), set(code.bases.get(other, []))
    return bool(mine & theirs) or one in theirs or other in mine


def _is_record(node: ast.ClassDef) -> bool:
    names = [dotted_parts(d.func if isinstance(d, ast.Call) else d)[-1:] for d in node.decorator_list]
    bases = [dotted_parts(base)[-1:] for base in node.bases]
    return any(n and n[0] in RECORDS for n in names) or any(b and b[0] in RECORD_BASES for b in bases)


def run(request: dict[str, Any]) -> dict[str, Any]:
    """Examine files for what they accept and don't use, and say what of it wasn't so before.

    Args:
        request: root, stock (may be missing on disk), around (the whole tree), paths, words, most.

    Returns:
        findings, lost, unread, blind and counts, as `dead_parameter` documents them.

    Raises:
        InsideError: a path leaves the tree, or names a definition that isn't there.
    """
    with no_collection():
        return _reply(request)


def _reply(request: dict[str, Any]) -> dict[str, Any]:
    targets, words = targets_of(list(request["paths"])), {str(word) for word in request.get("words", [])}
    around = Around(request.get("around") or request["root"], [path for path, _ in targets])
    now, before = Side(Tree(request["root"]), around, words), None
    stock = request.get("stock", "")
    if stock and os.path.isdir(stock):
        before = Side(Tree(stock), around, words)
        before.read([(path, "") for path, _ in targets if before.tree.is_file(path)])
    for path, name in targets:
        if not now.tree.is_file(path) and (name or before is None or not before.tree.is_file(path)):
            now.tree.require(path)
    now.read([(path, name) for path, name in targets if now.tree.is_file(path)])
    new = _new(now, before) if before else {}
    rows = [_row(each, new.get(id(each), [])) for each in now.found]
    rows.sort(key=lambda row: (not row["new"], CONFIDENCE.index(row["confidence"]), row["file"], row["line"]))
    unread = [*now.unread, *(before.unread if before else [])]
    return {
        "findings": rows[: int(request.get("most", 100))],
        "lost": _lost(now, before) if before else [],
        "unread": list({(u["file"], u["reason"]): u for u in unread}.values()),
        "blind": now.blind,
        "compared": before is not None,
        "files": len(now.codes),
        "routines": sum(len(code.routines) for code in now.codes.values()),
        "examined": now.examined,
        "new_count": sum(row["new"] for row in rows),
        "total": len(rows),
    }


def _new(now: Side, before: Side) -> dict[int, list[str]]:
    """Findings that there are more of than before, with their new parts; branches that weren't there go first."""
    had = Counter(key for each in before.found for key in each.keys)
    places = {(key, each.where) for each in before.found for key in each.keys}
    more = Counter(key for each in now.found for key in each.keys) - had
    found: dict[int, list[str]] = {}
    rows = [(each, key) for each in now.found for key in each.keys]
    for each, key in sorted(rows, key=lambda row: (row[1], row[0].where) in places):
        if more[key] > 0:
            more[key] -= 1
            found.setdefault(id(each), []).append(key[-1])
    return found


def _row(each: Finding, parts: list[str]) -> dict[str, Any]:
    new, row = bool(parts), {name: getattr(each, name) for name in each.__dataclass_fields__ if name != "where"}
    row["new_parts"] = [part for part in parts if part]
    return {**row, "siblings": each.siblings[:6], "new": new}


def _lost(now: Side, before: Side) -> list[dict[str, Any]]:
    """Names that a function reads less often than it did; a function or file that is gone reads nothing."""
    rows = []
    for path, old in before.codes.items():
        new = now.codes.get(path)
        for qualname, routine in old.routines.items():
            here = new.routines.get(qualname) if new is not None else None
            had, has = _reads(routine.node), _reads(here.node) if here is not None else Counter()
            for name in sorted(had - has):
                line = here.node.lineno if here is not None else 1
                row = {"file": to_shown(path), "line": line, "scope": qualname, "name": name}
                rows.append({**row, "before": had[name], "after": has[name]})
        had, has = _outside(old), _outside(new) if new is not None else Counter()
        for name in sorted(had - has):
            row = {"file": to_shown(path), "line": 1, "scope": "(outside functions)", "name": name}
            rows.append({**row, "before": had[name], "after": has[name]})
    return rows[:300]


def _outside(code: Code) -> Counter[str]:
    """Reads at module level and in class bodies."""
    return _reads(code.tree) - sum((_reads(r.node) for r in code.routines.values()), Counter())


def _reads(tree: ast.AST) -> Counter[str]:
    found: Counter[str] = Counter()
    for node in ast.walk(tree):
        if isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, ast.Load):
            found[node.id if isinstance(node, ast.Name) else node.attr] += 1
    return found
