"""Compare functions that do the same job in different ways: which of them lacks what the others do, or ask first."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Any

from .collecting import no_collection
from .fail import InsideError
from .paths import from_shown, to_shown
from .source import Tree
from .twins_changes import Edits, edits
from .twins_code import Code, read_code
from .twins_differ import Difference, differences
from .twins_groups import Group, groups_of
from .twins_uses import Doings, doings

MOST_GROUPS = 200
MOST_GUARDS = 12


@dataclass
class Side:
    """One of the two trees that are compared."""

    tree: Tree
    codes: dict[str, Code] = field(default_factory=dict)
    unread: list[dict[str, str]] = field(default_factory=list)
    groups: list[Group] = field(default_factory=list)
    found: list[tuple[Group, Difference]] = field(default_factory=list)
    done: dict[int, dict[str, Doings]] = field(default_factory=dict)

    def read(self, targets: list[tuple[str, str]]) -> None:
        """Parse the files, and find groups and differences in them."""
        for path, name in targets:
            code, why = read_code(self.tree, path)
            if code is None:
                self.unread.append({"file": to_shown(path), "reason": why})
                continue
            self.codes[path] = code
            if name and not any(q == name or q.startswith(f"{name}.") for q in (*code.routines, *code.bases)):
                raise InsideError(f"{to_shown(path)} defines no {name}; it has {_some(code)}")
            for group in groups_of(code):
                if not name or any(_within(m.routines[0].qualname, name) for m in group.members):
                    self._add(code, group)

    def _add(self, code: Code, group: Group) -> None:
        if len(self.groups) >= MOST_GROUPS:
            return
        done = {member.name: doings(code, member, group) for member in group.members}
        self.groups.append(group)
        self.done[id(group)] = done
        self.found += [(group, each) for each in differences(group, done)]


def run(request: dict[str, Any]) -> dict[str, Any]:
    """Find twins in files and say where they differ, and which differences weren't there before.

    Args:
        request: root, stock (may be missing on disk), paths (`file.py` or `file.py:Class.method`), words, most.

    Returns:
        groups, differences, edits, unread, counts and left_out, as `twin_paths` documents them.

    Raises:
        InsideError: a path leaves the tree, or names a definition that isn't there.
    """
    with no_collection():
        return _Answer(request).reply()


def _some(code: Code) -> str:
    names = [*code.bases, *(n for n in code.routines if "." not in n)]
    return ", ".join(names[:8]) or "no definitions"


def _within(qualname: str, name: str) -> bool:
    return qualname == name or qualname.startswith(f"{name}.")


def targets_of(paths: list[str]) -> list[tuple[str, str]]:
    """Each path with the dotted name after its last colon, if there is one."""
    found = []
    for path in paths:
        file, colon, name = path.rpartition(":")
        named = colon and file.endswith(".py") and name.replace(".", "").isidentifier()
        found.append((from_shown(file if named else path), name if named else ""))
    return list(dict.fromkeys(found))


class _Answer:
    def __init__(self, request: dict[str, Any]) -> None:
        self.words = [str(word) for word in request.get("words", [])]
        self.most = int(request.get("most", 60))
        targets = targets_of(list(request["paths"]))
        self.now = Side(Tree(request["root"]))
        stock = request.get("stock", "")
        self.before = Side(Tree(stock)) if stock and os.path.isdir(stock) else None
        self._check(targets)
        self.now.read(targets)
        if self.before:
            self.before.read([(path, "") for path, _ in targets])
        self.edits = edits(self.now, self.before) if self.before else Edits()

    def _check(self, targets: list[tuple[str, str]]) -> None:
        """A file that is in neither tree is a mistake of whoever named it; one that a patch deletes isn't."""
        for path, name in targets:
            gone = self.before is not None and not name and self.before.tree.is_file(path)
            if not gone and not self.now.tree.is_file(path):
                self.now.tree.require(path)

    def reply(self) -> dict[str, Any]:
        known = self._known()
        rows = [self._row(group, each, known) for group, each in self.now.found]
        rows = [row for row in rows if not self.words or row["about"]]
        rows.sort(key=lambda row: (-row["new"], -row["rank"], row["line"]))
        return {
            "groups": [self._group(n, group) for n, group in enumerate(self.now.groups)],
            "differences": rows[: self.most],
            "compared": self.before is not None,
            "same_edits": self.edits.same,
            "lone_edits": self.edits.lone,
            "unread": self._unread(),
            "files": len(self.now.codes),
            "routines": sum(len(code.routines) for code in self.now.codes.values()),
            "new_count": sum(row["new"] for row in rows),
            "total": len(rows),
        }

    def _unread(self) -> list[dict[str, str]]:
        rows = [*self.now.unread, *(self.before.unread if self.before else [])]
        return list({(r["file"], r["reason"]): r for r in rows}.values())

    def _known(self) -> set[tuple[str, ...]]:
        """Differences that were there before, under the names that their functions have now."""
        known: set[tuple[str, ...]] = set()
        for _, each in self.before.found if self.before else []:
            known |= each.identities(self.edits.renamed.get(each.member, each.member))
        return known

    def _row(self, group: Group, each: Difference, known: set[tuple[str, ...]]) -> dict[str, Any]:
        fresh = each.identities(each.member) - known if self.before is not None else set()
        return {
            "group": self.now.groups.index(group),
            "group_close": group.close,
            "file": to_shown(group.path),
            "line": each.own.line if each.own else self._line(group, each.member),
            "kind": each.kind,
            "subject": each.subject,
            "done": each.done,
            "member": each.member,
            "example": each.example,
            "example_line": each.use.line,
            "example_text": each.use.text,
            "example_guards": list(each.use.guards[-MOST_GUARDS:]),
            "guards": list(each.guards),
            "new_guards": sorted(row[4] for row in fresh if len(row) > 4),
            "own_text": each.own.text if each.own else "",
            "own_guards": list(each.own.guards[-MOST_GUARDS:]) if each.own else [],
            "have": each.share[0],
            "could": each.share[1],
            "alike": each.alike,
            "unseen": each.unseen,
            "strong": each.strong and not each.unseen,
            "new": bool(fresh),
            "about": each.about(self.words),
            "rank": round(each.rank(group.close), 1),
        }

    def _line(self, group: Group, name: str) -> int:
        return next(member.line for member in group.members if member.name == name)

    def _group(self, number: int, group: Group) -> dict[str, Any]:
        return {
            "number": number,
            "file": to_shown(group.path),
            "why": group.why,
            "close": group.close,
            "members": [self._member(group, member.name) for member in group.members],
        }

    def _member(self, group: Group, name: str) -> dict[str, Any]:
        doing = self.now.done[id(group)][name]
        uses = [
            {
                "subject": u.subject,
                "kind": u.kind,
                "line": u.line,
                "text": u.text,
                "guards": list(u.guards[-MOST_GUARDS:]),
            }
            for u in doing.uses
            if u.subject in self.words
        ]
        return {"name": name, "line": self._line(group, name), "uses": uses[:40], "hands_self": doing.hands_self[:5]}
