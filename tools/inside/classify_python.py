"""Classes of the changes in a Python file: pair its statements, hand each pair to the rules that know it."""

from __future__ import annotations

import ast
from bisect import bisect_right

from .change_kinds import COSMETIC, Change
from .classify_definitions import compare_definitions, compare_handlers, compare_imports, imported
from .classify_expr import Comparer
from .classify_flow import (
    compare_asserts,
    compare_loops,
    compare_tests,
    conditional_assert,
    inner_nodes,
    lone_assert,
    lone_block,
    lone_if,
    lone_raise,
)
from .classify_pairs import VALUES, Pairing, match_equal, pair, whole_moves
from .classify_sink import Sink, arrow
from .classify_units import Definition, Range, Source, Unit, show, touched
from .classify_values import compare_values, lone_value
from .hunks import Block


def classify_python(old: Source, new: Source, hunks: list[list[Block]]) -> list[list[Change]]:
    """Changes of each hunk (a list of blocks) between two parsed sides, unsettled, in the hunks' order.

    A hunk without any statement's difference gives an empty list: its lines differ in layout or comments only.
    """
    pairings = [pair(a, b) for a, b in zip(*_both_sides(old, new, hunks), strict=True)]
    for pairing, hunk in zip(pairings, hunks, strict=True):
        _find_moves(pairing, hunk, old, new)
    _across(pairings)
    return [_hunk(Comparer(old, new), pairing) for pairing in pairings]


def _both_sides(old: Source, new: Source, hunks: list[list[Block]]) -> tuple[list[list[Unit]], list[list[Unit]]]:
    """Touched units of every hunk; a statement touched on one side counts as touched on the other too.

    A decorator put before a function changes no line of the function there; the unchanged lines lead to it.
    """
    ranges = [[_ranges(h, side) for h in hunks] for side in (0, 1)]
    units = touched(old, ranges[0]), touched(new, ranges[1])
    mirror = Mirror([block for blocks in hunks for block in blocks])
    more = False
    for n in range(len(hunks)):
        there = _images(units[0][n], old.shift, mirror, 0), _images(units[1][n], new.shift, mirror, 1)
        more = more or bool(there[0] or there[1])
        ranges[1][n] = ranges[1][n] + there[0]
        ranges[0][n] = ranges[0][n] + there[1]
    return (touched(old, ranges[0]), touched(new, ranges[1])) if more else units


class Mirror:
    """Finds the unchanged line on one side that an unchanged line of the other side is."""

    def __init__(self, every: list[Block]) -> None:
        """Take all differing blocks of the file, in order."""
        self.starts = [block.old_start for block in every], [block.new_start for block in every]
        self.ends = [block.old_end for block in every], [block.new_end for block in every]

    def image(self, line: int, side: int) -> int | None:
        """The 0-based line on the other side, or None for a changed line."""
        at = bisect_right(self.ends[side], line)
        if at < len(self.ends[side]) and self.starts[side][at] <= line:
            return None
        return line + (self.ends[1 - side][at - 1] - self.ends[side][at - 1] if at else 0)


def _images(units: list[Unit], shift: int, mirror: Mirror, side: int) -> list[Range]:
    """Where the unchanged lines of some units are on the other side."""
    found = []
    for unit in units:
        for line in {unit.start - shift, unit.end - shift, getattr(unit.node, "lineno", unit.start) - shift}:
            image = mirror.image(line - 1, side)
            if image is not None:
                found.append((image + 1, image + 2))
    return found


def _ranges(blocks: list[Block], side: int) -> list[Range]:
    if side == 0:
        return [(b.old_start + 1, b.old_end + 1) for b in blocks]
    return [(b.new_start + 1, b.new_end + 1) for b in blocks]


def _find_moves(pairing: Pairing, hunk: list[Block], old: Source, new: Source) -> None:
    """Set apart equal statements that left one block of lines for another, past lines that stayed.

    Those that came under other conditions did not move: a guard around them came or went.
    """
    for both in list(pairing.equal):
        a, b = both[0].start - 1 - old.shift, both[1].start - 1 - new.shift
        left = next((n for n, block in enumerate(hunk) if block.old_start <= a < block.old_end), None)
        right = next((n for n, block in enumerate(hunk) if block.new_start <= b < block.new_end), None)
        trivial = len(both[0].words) <= 3 or both[0].guards != both[1].guards
        if left is None or right is None or left == right or trivial:
            continue
        first, last = sorted((left, right))
        between = old.lines[hunk[first].old_end : hunk[last].old_start]
        if any(line.strip() for line in between):
            pairing.equal.remove(both)
            pairing.moved.append(both)


def _across(pairings: list[Pairing]) -> None:
    """Find what left one hunk and arrived in another, and give it to the hunk where it arrived and the one it left."""
    whole = Pairing()
    for pairing in pairings:
        whole.removed += pairing.removed
        whole.added += pairing.added
    match_equal(whole)
    whole_moves(whole)
    gone = {id(unit) for both in whole.moved for unit in both}
    for pairing in pairings:
        here = {id(unit) for unit in (*pairing.removed, *pairing.added)}
        pairing.moved += [both for both in whole.moved if id(both[0]) in here or id(both[1]) in here]
        pairing.removed = [unit for unit in pairing.removed if id(unit) not in gone]
        pairing.added = [unit for unit in pairing.added if id(unit) not in gone]


def _hunk(sink: Sink, pairing: Pairing) -> list[Change]:
    for old, new in pairing.equal + pairing.moved:
        sink.units = (old, new)
        conditional_assert(sink, old, new)
    for old, new in pairing.moved:
        sink.units = (old, new)
        sink.say(
            "moved_only",
            f"line {old.start - sink.sources[0].shift} → {new.start - sink.sources[1].shift}: {show(new.node)}",
            old.node,
            new.node,
        )
    fates = inner_nodes(pairing.removed), inner_nodes(pairing.added)
    _imports(sink, pairing)
    for old, new in pairing.changed:
        sink.units = (old, new)
        said = len(sink.changes)
        _compare(sink, old, new)
        if len(sink.changes) == said:
            sink.say("value_changed", f"the same in another form: {arrow(old.node, new.node)}", old.node, new.node)
    _lone(sink, False, pairing, fates[0])
    _lone(sink, True, pairing, fates[1])
    _kernels(sink, pairing)
    return sorted(sink.changes, key=lambda c: c.clone_line or c.stock_line or 0)


def _imports(sink: Sink, pairing: Pairing) -> None:
    """All imports of a hunk are compared as one set of names."""
    old = [a for a, _ in pairing.changed if imported(a.node)] + [u for u in pairing.removed if imported(u.node)]
    new = [b for _, b in pairing.changed if imported(b.node)] + [u for u in pairing.added if imported(u.node)]
    if not old and not new:
        return
    sink.units = (old[0] if old else None, new[0] if new else None)
    compare_imports(sink, [u.node for u in old], [u.node for u in new])
    pairing.changed = [both for both in pairing.changed if not imported(both[0].node)]
    pairing.removed = [u for u in pairing.removed if not imported(u.node)]
    pairing.added = [u for u in pairing.added if not imported(u.node)]


def _compare(sink: Sink, old: Unit, new: Unit) -> None:
    a, b = old.node, new.node
    if isinstance(a, Definition):
        compare_definitions(sink, a, b)
    elif isinstance(a, ast.If | ast.While):
        compare_tests(sink, a, b)
    elif isinstance(a, ast.Assert) and isinstance(b, ast.Assert):
        compare_asserts(sink, a, b)
    elif isinstance(a, ast.ExceptHandler) and isinstance(b, ast.ExceptHandler):
        compare_handlers(sink, a, b)
    elif isinstance(a, ast.Raise) and isinstance(b, ast.Raise):
        _raises(sink, a, b)
    elif isinstance(a, VALUES):
        if not _docstring(sink, a, b):
            compare_values(sink, a, b, new.in_class)
    elif isinstance(a, ast.For | ast.AsyncFor | ast.With | ast.AsyncWith):
        compare_loops(sink, a, b)
    else:
        sink.say("value_changed", arrow(a, b) if isinstance(a, ast.stmt) else type(a).__name__, "", "")


def _docstring(sink: Sink, a: ast.AST, b: ast.AST) -> bool:
    texts = [isinstance(n, ast.Expr) and isinstance(n.value, ast.Constant) for n in (a, b)]
    if all(texts):
        sink.say("docstring_only", "docstring differs", a, b)
    return all(texts)


def _raises(sink: Sink, a: ast.Raise, b: ast.Raise) -> None:
    kinds = [show(n.exc.func if isinstance(n.exc, ast.Call) else n.exc) for n in (a, b)]
    if kinds[0] == kinds[1]:
        sink.say("log_only", f"message of {kinds[0]}", a, b)
    else:
        sink.say("value_changed", f"raises {kinds[1]} instead of {kinds[0]}", a, b)


def _lone(sink: Sink, added: bool, pairing: Pairing, fate: set[int]) -> None:
    """Judge what came (or went) alone; `fate` holds the ids of all nodes that did."""
    units = pairing.added if added else pairing.removed
    tests = {id(u.node) for u in units if isinstance(u.node, ast.If)}
    for unit in units:
        sink.units = (None, unit) if added else (unit, None)
        node = unit.node
        if isinstance(node, ast.Assert):
            lone_assert(sink, unit, added, pairing)
        elif isinstance(node, ast.Raise):
            lone_raise(sink, unit, added, tests)
        elif isinstance(node, ast.If | ast.While):
            _lone_test(sink, unit, added, fate)
        elif isinstance(node, VALUES):
            lone_value(sink, unit, added)
        elif isinstance(node, Definition):
            lines = (getattr(node, "end_lineno", 0) or 0) - unit.start + 1
            sink.say("code_added" if added else "code_removed", f"{show(node)} ({lines} lines)", "", "")
        elif isinstance(node, ast.Continue | ast.Break):
            _lone_exit(sink, unit, added, tests)
        elif not isinstance(node, ast.Pass):
            lone_block(sink, unit, added)


def _lone_test(sink: Sink, unit: Unit, added: bool, fate: set[int]) -> None:
    said = len(sink.changes)
    lone_if(sink, unit, added, fate)
    body = getattr(unit.node, "body", [])
    # An if that holds nothing but `pass` has no statement to speak for it.
    if len(sink.changes) == said and all(isinstance(node, ast.Pass) for node in body):
        sink.say("code_added" if added else "code_removed", show(unit.node), "", "")


def _lone_exit(sink: Sink, unit: Unit, added: bool, tests: set[int]) -> None:
    if not any(id(parent) in tests for parent in unit.above):
        sink.say("guard_added" if added else "guard_removed", show(unit.node), "", "")


def _kernels(sink: Sink, pairing: Pairing) -> None:
    """One remark for each GPU kernel whose body really differs in this hunk."""
    units = [new for _, new in pairing.changed] + pairing.added + pairing.removed
    kernels = {unit.qualname: unit for unit in reversed(units) if unit.kernel}
    for name, unit in kernels.items():
        if any(c.kind not in COSMETIC and c.scope == name for c in sink.changes):
            sink.units = (unit, None) if unit in pairing.removed else (None, unit)
            sink.say("kernel_changed", f"body of {name}", "", "")
