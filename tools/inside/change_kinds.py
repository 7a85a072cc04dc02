"""The classes a change can have, each with its meaning: the vocabulary of the diff tool and of the patch ranking."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

CLIP = 300
"""Longest detail, before or after text of one change, in characters."""


class Kind(NamedTuple):
    """One class of change.

    Attributes:
        name: as rules and users spell it.
        family: check, value, tensor, identity, interface, flow, kernel, cosmetic or other.
        meaning: one line, precise enough to decide a doubtful case.
    """

    name: str
    family: str
    meaning: str


_ROWS = (
    ("assertion_removed", "check", "an assert statement (or C++ check macro) is gone"),
    ("assertion_weakened", "check", "an assert became looser, conditional, or a mere warning"),
    ("assertion_added", "check", "an assert is new, or an existing one became stricter"),
    ("raise_removed", "check", "an exception that used to be raised no longer is"),
    ("guard_removed", "check", "a condition no longer protects code that is still there, or an early exit is gone"),
    ("guard_added", "check", "existing code became conditional, or a new check raises, continues or breaks"),
    ("exception_swallowed", "check", "an except clause is new, wider, or no longer re-raises"),
    ("condition_changed", "value", "the test of an if, while, comparison or boolean expression differs"),
    ("default_changed", "value", "a default differs: parameter, field, command line option or environment variable"),
    ("constant_changed", "value", "a literal number, string or boolean differs"),
    ("value_changed", "value", "an operand, element or assigned expression was replaced by another"),
    ("assignment_added", "value", "a variable, attribute or field is newly assigned"),
    ("assignment_removed", "value", "a variable, attribute or field is no longer assigned"),
    ("multiply_added", "value", "a factor now multiplies a value (also in place, or as alpha=)"),
    ("multiply_removed", "value", "a factor no longer multiplies a value"),
    ("divide_added", "value", "a value is now divided by another"),
    ("divide_removed", "value", "a value is no longer divided by another"),
    ("arithmetic_changed", "value", "a sum, difference, sign, power or product of sizes differs"),
    ("dtype_changed", "tensor", "an element type or cast differs; the detail says downcast or upcast, and the bits"),
    ("index_changed", "tensor", "a subscript, slice, offset, gather or scatter index differs"),
    ("mask_changed", "tensor", "a mask, its fill value, or what it selects differs"),
    ("reduction_changed", "tensor", "a sum, mean, max, all-reduce …, or its dimension, differs"),
    ("layout_changed", "tensor", "contiguous, view, transpose, permute, reshape or stride was added, dropped, altered"),
    ("inplace_introduced", "tensor", "an operation that made a new value now overwrites its operand"),
    ("cache_key_changed", "identity", "what identifies a cached entry differs: key, hash, salt, or the caching itself"),
    ("parameter_added", "interface", "a function takes a parameter it did not take"),
    ("parameter_removed", "interface", "a function no longer takes a parameter"),
    ("argument_added", "interface", "a call passes an argument it did not pass"),
    ("argument_dropped", "interface", "a call no longer passes an argument"),
    ("argument_changed", "interface", "a call passes its arguments in another order or style"),
    ("call_replaced", "interface", "the same place calls another function"),
    ("call_added", "interface", "a call is new, or now wraps an existing value"),
    ("call_removed", "interface", "a call is gone, or no longer wraps a value that is still there"),
    ("decorator_changed", "interface", "a function or class has another decorator"),
    ("import_changed", "interface", "imported or included names differ"),
    ("early_return_added", "flow", "a function can now return before its end"),
    ("sync_removed", "flow", "a synchronisation is gone: barrier, stream or event wait, __syncthreads"),
    ("code_added", "flow", "a new function, class, loop or other statement that no narrower class fits"),
    ("code_removed", "flow", "a function, class, loop or other statement is gone and no narrower class fits"),
    ("kernel_changed", "kernel", "the body or launch of a GPU kernel (Triton, CUDA) differs"),
    ("config_changed", "other", "a key or value of a configuration file (YAML, JSON, TOML) differs"),
    ("text_changed", "other", "lines differ and nothing narrower can be said"),
    ("rename_only", "cosmetic", "a name was replaced consistently by a new one"),
    ("moved_only", "cosmetic", "the same statement or definition stands elsewhere"),
    ("whitespace_only", "cosmetic", "spacing, line breaks or line endings differ"),
    ("comment_only", "cosmetic", "comments differ"),
    ("docstring_only", "cosmetic", "a docstring differs"),
    ("log_only", "cosmetic", "a log line, warning text or error message differs"),
    ("type_annotation_only", "cosmetic", "type annotations differ"),
    ("test_only", "cosmetic", "the file is a test, which no deployment runs"),
)

KINDS: dict[str, Kind] = {row[0]: Kind(*row) for row in _ROWS}

COSMETIC = frozenset(kind.name for kind in KINDS.values() if kind.family == "cosmetic")
"""Classes that are reported only where nothing else happened in the same hunk."""

WEAK = frozenset(
    "assignment_added assignment_removed call_added call_removed code_added code_removed value_changed "
    "import_changed".split()
)
"""Classes of which a hunk lists a few and counts the rest."""


@dataclass
class Change:
    """One classified difference.

    Attributes:
        kind: a name in `KINDS`.
        detail: the finding in one line, for a reader.
        before: source of the smallest differing part in stock; empty when it is new.
        after: the same in the clone; empty when it is gone.
        stock_line: 1-based line in stock, or None.
        clone_line: 1-based line in the clone, or None.
        scope: qualified name of the enclosing function or class; empty at module level.
        guards: conditions under which the line runs, outermost first.
    """

    kind: str
    detail: str
    before: str = ""
    after: str = ""
    stock_line: int | None = None
    clone_line: int | None = None
    scope: str = ""
    guards: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """The change as JSON values, long texts clipped."""
        row: dict[str, Any] = dict(vars(self))
        for name in ("detail", "before", "after"):
            row[name] = clip(row[name])
        row["guards"] = [clip(guard) for guard in self.guards]
        return row


def clip(text: str, limit: int = CLIP) -> str:
    """`text` on one line, at most `limit` characters, an ellipsis standing for the rest."""
    line = " ".join(text.split())
    return line if len(line) <= limit else line[: limit - 1] + "…"


def settle(changes: list[Change]) -> list[Change]:
    """What a hunk reports: no duplicates, no cosmetic class beside a real one, weak classes folded after eight."""
    seen: dict[tuple[str, str, int | None, int | None], Change] = {}
    for change in changes:
        seen.setdefault((change.kind, change.detail, change.stock_line, change.clone_line), change)
    unique = list(seen.values())
    real = [change for change in unique if change.kind not in COSMETIC]
    kept = [change for change in unique if not real or change in real or change.kind == "moved_only"]
    return _fold(kept)


def _fold(changes: list[Change], most: int = 8) -> list[Change]:
    counts: dict[str, int] = {}
    kept: list[Change] = []
    for change in changes:
        counts[change.kind] = counts.get(change.kind, 0) + 1
        if change.kind not in WEAK or counts[change.kind] <= most:
            kept.append(change)
    for kind, count in counts.items():
        if kind in WEAK and count > most:
            last = [change for change in kept if change.kind == kind][-1]
            last.detail = f"{clip(last.detail, 200)} (and {count - most} more in this hunk)"
    return kept
