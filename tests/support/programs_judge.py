"""Judges a worlds table by the truth: does every world that a program can be in have its row, and is its count right?

A row names its guards by source text. To tell whether a guard has the row's value in a world, the world is run, and the
text evaluated where the guard stands, or else in its function, its file, or anywhere it makes sense.
"""

from __future__ import annotations

import ast
import contextlib
import enum
import operator
import re
from dataclasses import dataclass, field
from types import CodeType, FrameType
from typing import Any

from .programs_conditions import METHODS
from .programs_truth import UNDECIDED, Program, Truth, World, truth

RIGHT, UNKNOWN, WRONG, MISSING = "right", "unknown", "wrong", "missing"
NOT_FOUND = object()
PLATFORM = "platform"
ORDERS = {"<": operator.lt, "<=": operator.le, "=": operator.eq, "==": operator.eq, ">": operator.gt, ">=": operator.ge}


@dataclass(frozen=True)
class Platform:
    """What torch was built for; `another` is any that a program doesn't ask for."""

    name: str


@dataclass
class Guard:
    """A guard of the table, and what it was seen to be in one world."""

    name: str
    path: str
    line: int
    code: CodeType | None
    holder: str = ""
    """The class that `self` has to be of, where the text named an object by its class."""
    value: Any = NOT_FOUND
    distance: int = 99
    """How far from the guard's place the value was found; nearer is better."""

    def look(self, frame: FrameType) -> None:
        """Evaluate it in this frame, unless a nearer one told already."""
        distance = self.far(frame)
        if self.code is None or distance > self.distance:
            return
        if self.holder and type(frame.f_locals.get("self")).__name__ != self.holder:
            return
        with contextlib.suppress(Exception):
            self.value = eval(self.code, frame.f_globals, frame.f_locals)
            self.distance = distance

    def far(self, frame: FrameType) -> int:
        """0 on its line, 1 in its function, 2 in its file, 3 elsewhere."""
        code = frame.f_code
        if code.co_filename != self.path:
            return 3
        if frame.f_lineno == self.line:
            return 0
        lines = [line for _, _, line in code.co_lines() if line]
        return 1 if code.co_name != "<module>" and min(lines) <= self.line <= max(lines) else 2


def guard(entry: dict[str, Any]) -> Guard:
    """A guard as the table lists it; a text that isn't an expression, or that changes something, is never evaluated.

    `FusedMoE.quant_method` is how a table may name an attribute of an object of which it knows the class.
    """
    name, code = entry["name"], None
    owner = re.search(r"\b([A-Z]\w*[a-z]\w*)\.[a-z]", name)
    text = name.replace(f"{owner[1]}.", "self.") if owner else name
    with contextlib.suppress(SyntaxError, ValueError):
        if not re.search(r"\w_\(", text):
            code = compile(ast.parse(text, mode="eval"), "guard", "eval")
    return Guard(name, entry["path"], entry["line"], code, owner[1] if owner else "")


def holds(found: Any, wanted: str) -> bool:
    """Whether a value is what a row says, in any of the ways in which a table may write it."""
    if isinstance(found, Platform):
        return wanted == found.name or (found.name == "another" and wanted not in ("cuda", "hip"))
    order = re.fullmatch(r"(<=|>=|==|<|>|=) (-?[\d.]+)", wanted)
    if order:
        return bool(ORDERS[order[1]](found, float(order[2])))
    if wanted.lower() in ("true", "false"):
        return bool(found) is (wanted.lower() == "true")
    if wanted.startswith("not "):
        return not holds(found, wanted.removeprefix("not "))
    return wanted in spellings(found) or wanted.rpartition(".")[2] in spellings(found)


def spellings(value: Any) -> set[str]:
    """How a table may write a value."""
    if isinstance(value, type):
        return {value.__name__}
    if isinstance(value, enum.Enum):
        return {value.name, str(value.value), repr(value.value)}
    if value is None:
        return {"None", "none", "null"}
    if isinstance(value, str):
        # The value from which an Enum's member is made may stand for the member.
        return {value, value.upper(), repr(value)}
    return {str(value), repr(value), type(value).__name__}


@dataclass(frozen=True)
class Verdict:
    """How a table does in one world."""

    outcome: str
    world: World
    truth: Truth
    rows: list[dict[str, Any]]
    loose: bool = False
    """Whether some guard of the rows couldn't be told, so that one right row among them had to do."""
    seen: dict[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        said = [
            (row.get("parts") or row["count"], row.get("raises") or row.get("unknown"), row["when"])
            for row in self.rows
        ]
        return f"{self.outcome}: {self.world}\n  true: {self.truth}\n  said: {said}\n  guards: {self.seen}"


def judge(program: Program, table: dict[str, Any]) -> list[Verdict]:
    """A verdict for each world of `program`."""
    return [judge_world(program, world, table) for world in program.worlds()]


def judge_world(program: Program, world: World, table: dict[str, Any]) -> Verdict:
    """The verdict for one world."""
    guards = {entry.get("key", entry["name"]): guard(entry) for entry in table["guards"]}

    def watch(frame: FrameType) -> None:
        for each in guards.values():
            each.look(frame)

    real = truth(program, world, watch)
    named = {key: known(each.name, each, world) for key, each in guards.items()}
    matches = [(row, matched(row, named)) for row in table["worlds"]]
    sure = [row for row, match in matches if match]
    rows = sure or [row for row, match in matches if match is None]
    outcomes = [outcome(row, real, program) for row in rows]
    seen = {name: "?" if value is NOT_FOUND else repr(value) for name, value in named.items()}
    return Verdict(overall(outcomes, strict=bool(sure)), world, real, rows, not sure, seen)


def known(name: str, seen: Guard, world: World) -> Any:
    """What a guard is in this world; those that aren't expressions are known by their names."""
    if name == PLATFORM:
        return Platform(world.get("platform", "cuda"))
    if seen.value is NOT_FOUND and "ENGINE_FAST" in name:
        return bool(world.get("env"))
    if seen.value is NOT_FOUND and re.match(r"type\(.*quant_method", name):
        return world.get("quant", METHODS[0])
    return seen.value


def matched(row: dict[str, Any], named: dict[str, Any]) -> bool | None:
    """Whether the row is about this world; None when a guard that nobody could evaluate decides."""
    answers = [all_hold(clauses, named) for clauses in alternatives(row)] + [None] * bool(row.get("more"))
    return True if True in answers else None if None in answers else False


def alternatives(row: dict[str, Any]) -> list[list[dict[str, Any]]]:
    """The conditions of a row: one of these lists of clauses holds."""
    when = row["when"]
    return when if when and isinstance(when[0], list) else [when]


def all_hold(clauses: list[dict[str, Any]], named: dict[str, Any]) -> bool | None:
    """Whether every clause holds: its guard has the value, or one of the values, that it names."""
    answers = [clause_holds(clause, named) for clause in clauses]
    return False if False in answers else None if None in answers else True


def clause_holds(clause: dict[str, Any], named: dict[str, Any]) -> bool | None:
    value = named.get(clause["guard"], NOT_FOUND)
    wanted = [clause["is"]] if isinstance(clause["is"], str) else clause["is"]
    return None if value is NOT_FOUND else any(holds(value, one) for one in wanted)


def outcome(row: dict[str, Any], real: Truth, program: Program) -> str:
    """What to think of one row; `parts` says how differently the parts of the output, shared ones too, are scaled."""
    if row.get("raises"):
        there = any(re.match(rf"{re.escape(place)}\b", row["raises"]) for place in real.where)
        return RIGHT if real.count == "raises" and there else WRONG
    if row["count"] is None and len(row.get("parts") or ()) > 1:
        return RIGHT if real.count == UNDECIDED else UNKNOWN if real.count in row["parts"] else WRONG
    if row["count"] is None:
        return UNKNOWN
    return RIGHT if row["count"] == real.count else WRONG


def overall(outcomes: list[str], strict: bool) -> str:
    """The verdict on several rows: all must be right, or, where it isn't known which one is meant, one of them."""
    if not outcomes:
        return MISSING
    order = (WRONG, UNKNOWN, RIGHT) if strict else (RIGHT, UNKNOWN, WRONG)
    return next(kind for kind in order if kind in outcomes)


def worst(program: Program, table: dict[str, Any], verdicts: list[Verdict]) -> list[Verdict]:
    """The verdicts that a table can't be forgiven: wrong counts, and worlds without a row.

    A program with a blind spot may be counted wrongly where the table says that there is one.
    """
    excused = program.blind and bool(table.get("blind"))
    return [v for v in verdicts if v.outcome == MISSING or (v.outcome == WRONG and not excused)]
