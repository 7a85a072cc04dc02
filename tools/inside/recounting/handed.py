"""How often a scale has got into what a computation is handed: a kernel, or a further layer."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from typing import Any

from ..exactly_once import algebra
from ..exactly_once.core import Arguments, Frame
from ..exactly_once.diagram import Node
from ..exactly_once.program import Function
from ..exactly_once.sinks import Sink
from ..exactly_once.table import Outcome, flat, outcome_of
from ..exactly_once.values import NONE, Const, FunctionValue, Murky, Obj, Opaque, Power, Tensor, Term, tensor
from ..exactly_once.wording import short
from .counting import Watching, each_argument

_OUTPUT = re.compile(r"^(o|out|output|att_out|attn_out(put)?|\w*_(o|out|output))$", re.IGNORECASE)
_WHOLE = re.compile(r"(^|_)(layer|self|module|attn|config|params|state)$")
_SMOOTH = {"softmax", "log_softmax", "exp", "exp2", "log", "tanh", "sigmoid", "clamp", "clip", "softplus", "norm"}


@dataclass
class Handed(Watching):
    """The power of a scale in what a computation gets: a kernel, or a layer that is handed an object holding it, is
    taken to use it once; a softmax leaves the count what it was.
    """

    def _function(self, callee: FunctionValue, arguments: Arguments, frame: Frame, pc: Node) -> Node:
        if callee.function.is_kernel:
            return self.unlisted(callee.function.name, arguments, frame, pc)
        return super()._function(callee, arguments, frame, pc)

    def tells(self, function: Function) -> bool:
        """See `Watching.tells`: it speaks of the factor."""
        return re.search(rf"\b{re.escape(self.factor)}\b", function.text) is not None

    def _operation(
        self, name: str, operands: list[Node], arguments: Arguments, frame: Frame, pc: Node, at: ast.AST, kind: str
    ) -> Node:
        if name in _SMOOTH and operands:
            self.note_handed(name, 0, operands[0], pc)
            return self.diagrams.under(pc, operands[0])
        return super()._operation(name, operands, arguments, frame, pc, at, kind)

    def apply_sink(self, sink: Sink, arguments: Arguments, frame: Frame, pc: Node) -> Node:
        """See `Sinking.apply_sink`: the sinks' data speak of routing."""
        return self.unlisted(sink.name, arguments, frame, pc)

    def unlisted(self, name: str, arguments: Arguments, frame: Frame, pc: Node, held_by: str = "") -> Node:
        """See `Sinking.unlisted`."""
        handed = self._handed_together(arguments.all(), pc)
        if all(not values for values, _ in self.diagrams.values(handed, pc)):
            return super().unlisted(name, arguments, frame, pc, held_by)
        for key, node in each_argument(arguments):
            self.note_handed(name, key, node, pc)
        if arguments.unknown or any(_holds_more(v) for n in arguments.all() for v, _ in self.diagrams.values(n, pc)):
            self.handed_to[short(name)] = None
        at = arguments.node or ast.Pass()
        result = self.diagrams.map(lambda values: self._product(name, values, frame, at), handed)
        if arguments.node not in self.statements_called:
            return result
        for key, source in arguments.sources.items():
            written = key if isinstance(key, str) else ""
            if _OUTPUT.match(written) or _OUTPUT.match(_base_name(source)):
                self.change(source, self.diagrams.ite(pc, result, dict(each_argument(arguments))[key]), frame, pc)
        return self.leaf(NONE)

    def _product(self, name: str, values: frozenset[Any], frame: Frame, at: ast.AST) -> Any:
        murky = next((v for v in values if isinstance(v, Murky)), None)
        if murky is not None:
            return murky
        if not values:
            return Opaque(short(name))
        values = frozenset(map(_number, values))
        powers = [v for v in values if isinstance(v, Power)]
        tensors = [v for v in values if isinstance(v, Tensor)]
        carrying = [v for v in tensors if any(t.k for t in v.terms)]
        where = f"({frame.module.path}:{getattr(at, 'lineno', 0)})"
        if len(powers) > 1 or len(carrying) > 1:
            return Murky(f"{name} gets it in several arguments {where}; it isn't known how it combines them")
        base = carrying[0] if carrying else tensor(Term(True, 0))
        if not powers:
            return base
        self.assume(f"{name} uses what it is handed once {where}")
        return algebra.multiply(base, powers[0], lambda kind: self.site(frame, at, "handed on"))

    def assign(self, target: ast.expr, value: Node, frame: Frame, pc: Node) -> None:
        """See `Core.assign`: what is stored under the factor's name is the factor, but a one or a None."""
        if getattr(target, "id", getattr(target, "attr", "")) == self.factor:
            value = self.diagrams.map(_as_factor, value)
        super().assign(target, value, frame, pc)

    def _opaque_method(self, value: Opaque, name: str, arguments: Arguments, frame: Frame, pc: Node) -> Node:
        # A layer that is handed whole to a backend: which backend, and how that uses it, is another entry's question.
        given = [v for node in arguments.all() for v, _ in self.diagrams.values(node, pc)]
        if any(isinstance(v, Obj) and self.factor in v.attrs for v in given):
            return self.unlisted(f"{value.text}.{name}", arguments, frame, pc)
        return super()._opaque_method(value, name, arguments, frame, pc)

    def _carried_by(self, value: Any) -> Any:
        if isinstance(value, Obj) and self.factor in value.attrs:
            return frozenset(
                v for v, _ in self.diagrams.values(value.attrs[self.factor]) if isinstance(v, Power | Murky)
            )
        return super()._carried_by(value)

    def outcome(self, value: Any) -> Outcome:
        """See `Watching.outcome`: whatever carries it counts; what doesn't may be added to it."""
        found = list(flat(value))
        murky = next((v for v in found if isinstance(v, Murky)), None)
        if murky is not None:
            return Outcome(None, unknown=murky.reason)
        terms = [t for v in found if isinstance(v, Tensor) for t in v.terms]
        carried = [Term(True, t.k, t.sites) for t in terms if t.k] or [Term(True, 0) for t in terms if t.routed][:1]
        if not carried:
            return Outcome(None, unknown="nothing that is computed from the input reaches the result")
        return outcome_of((Tensor(frozenset(carried)),), self)


def _base_name(source: ast.expr) -> str:
    """The name of the storage that an expression is a view of: `o` for `o.view(-1)[0]`."""
    at: ast.expr = source
    while isinstance(at, ast.Call | ast.Subscript):
        inner = at.value if isinstance(at, ast.Subscript) else at.func
        at = inner.value if isinstance(at, ast.Call) and isinstance(inner, ast.Attribute) else inner
    return str(getattr(at, "id", getattr(at, "attr", "")))


def _holds_more(value: Any) -> bool:
    """Whether something handed over whole may hold the factor, out of sight."""
    return isinstance(value, Opaque) and (value.hint is not None or bool(_WHOLE.search(value.text)))


def _number(value: Any) -> Any:
    """A product of the factor with something unknown that isn't computed from the input counts as a number."""
    if isinstance(value, Tensor) and not any(t.routed for t in value.terms):
        powers = {t.k for t in value.terms}
        if len(powers) == 1 and powers != {0}:
            return Power(powers.pop())
    return value


def _as_factor(value: Any) -> Any:
    value = _number(value)
    if isinstance(value, Opaque) and value.hint is None:
        return Power(1)
    return (
        Power(1) if isinstance(value, Const) and value.kind in ("int", "float") and value.value not in (0, 1) else value
    )
