"""Tensor operations by their torch names: which are products, sums, stores, which pass on what they get."""

from __future__ import annotations

import ast
from typing import Any

from . import algebra
from .core import Arguments, Frame
from .diagram import Node
from .expressions import Expressions
from .values import (
    UNBOUND,
    Const,
    Murky,
    Obj,
    Opaque,
    Power,
    Tensor,
    Tuple,
)
from .wording import short, text_of

SAME_SHAPE = {
    "empty",
    "zeros",
    "ones",
    "empty_like",
    "zeros_like",
    "ones_like",
    "arange",
    "randn",
    "rand",
    "new_empty",
    "new_zeros",
    "randint",
    "new_ones",
    "eye",
    "finfo",
    "iinfo",
    "no_grad",
    "inference_mode",
    "device",
    "Size",
}
_PRODUCTS = {
    "mul",
    "multiply",
    "matmul",
    "mm",
    "bmm",
    "dot",
    "linear",
    "einsum",
    "outer",
    "tensordot",
    "ger",
    "vdot",
    "kron",
}
_QUOTIENTS = {"div", "divide", "true_divide"}
_SUMS = {"add", "sub", "subtract", "logaddexp"}
_UNIONS = {"cat", "concat", "concatenate", "stack", "hstack", "vstack", "where", "maximum", "minimum"}
_STORES = {
    "copy",
    "index_add",
    "index_copy",
    "scatter_add",
    "scatter",
    "index_put",
    "masked_scatter",
    "scatter_reduce",
    "index_reduce",
}
_NONLINEAR = {
    "softmax",
    "sigmoid",
    "relu",
    "exp",
    "log",
    "sqrt",
    "rsqrt",
    "silu",
    "gelu",
    "tanh",
    "pow",
    "square",
    "norm",
    "log_softmax",
    "softplus",
    "clamp",
    "clip",
    "reciprocal",
    "abs",
    "layer_norm",
    "rms_norm",
    "normalize",
}
_PLAIN = {
    "size",
    "dim",
    "numel",
    "stride",
    "argmax",
    "argsort",
    "argmin",
    "is_contiguous",
    "data_ptr",
    "element_size",
    "tolist",
    "get_device",
    "storage_offset",
    "untyped_storage",
    "ge",
    "gt",
    "le",
    "lt",
    "eq",
    "ne",
    "any",
    "all",
    "isnan",
}
_PAIRS = {"topk": 2, "sort": 2, "max": 2, "min": 2, "kthvalue": 2, "mode": 2, "median": 2}


class Operations(Expressions):
    """Answers tensor operations."""

    def _is_operation(self, name: str) -> bool:
        plain = name.rstrip("_")
        return plain in _PRODUCTS | _QUOTIENTS | _SUMS | _STORES | _UNIONS or plain in (
            "addcmul",
            "addmm",
            "baddbmm",
            "where",
        )

    def operation(
        self, name: str, operands: list[Node], arguments: Arguments, target: ast.expr | None, frame: Frame, pc: Node
    ) -> Node:
        """A tensor operation by its torch name; a trailing underscore works in place on the first operand."""
        plain = name.rstrip("_") if not name.startswith("__") else name
        in_place = name.endswith("_") and not name.startswith("__")
        at = arguments.node or ast.Pass()
        result = self._operation(plain, operands, arguments, frame, pc, at, "in-place" if in_place else "multiply")
        out = arguments.sources.get("out")
        if in_place and target is not None:
            self.change(target, result, frame, pc)
        elif out is not None:
            self.change(out, result, frame, pc)
        return result

    def _operation(  # noqa: C901 - one branch a kind
        self, name: str, operands: list[Node], arguments: Arguments, frame: Frame, pc: Node, at: ast.AST, kind: str
    ) -> Node:
        d = self.diagrams
        operands = [d.under(pc, o) for o in operands]
        named = arguments.named

        def site(kind: str) -> int:
            return self.site(frame, at, kind)

        if name in _PLAIN:
            return self.leaf(Opaque(short(f"{ast.unparse(at)}" if hasattr(at, "lineno") else name)))
        if name in _PRODUCTS:
            factors = [o for o in operands if not isinstance(getattr(o, "value", None), Const)] + [
                named[n] for n in ("other", "input", "weight") if n in named
            ]
            scalars = [o for o in operands if isinstance(getattr(o, "value", None), Const)]
            result = (factors or scalars)[0]
            for other in factors[1:]:
                result = d.map2(lambda a, b: algebra.multiply(a, b, site, kind), result, other)
            return result
        if name in _QUOTIENTS and len(operands) > 1:
            return d.map2(lambda a, b: algebra.divide(a, b, site), operands[0], operands[1])
        if name in _SUMS and len(operands) > 1:
            other = operands[1]
            if "alpha" in named:
                other = d.map2(
                    lambda a, b: algebra.multiply(a, b, lambda k: site("alpha" if k != "reciprocal" else k)),
                    other,
                    named["alpha"],
                )
            return d.map2(algebra.add, operands[0], other)
        if name in ("addcmul", "addmm", "baddbmm", "addmv") and len(operands) > 2:
            product = d.map2(lambda a, b: algebra.multiply(a, b, site, kind), operands[1], operands[2])
            for scale in ("alpha", "value"):
                if scale in named:
                    product = d.map2(
                        lambda a, b: algebra.multiply(a, b, lambda k: site("alpha")), product, named[scale]
                    )
            base = operands[0]
            if "beta" in named:
                base = d.map2(lambda a, b: algebra.multiply(a, b, site, kind), base, named["beta"])
            return d.map2(algebra.add, base, product)
        if name in _UNIONS:
            parts = operands[1:] if name == "where" and len(operands) > 1 else operands
            parts = parts + [v for n, v in named.items() if n not in ("dim", "axis", "out")]
            return self._union(parts, pc)
        if name in _STORES:
            sources = [o for o in operands[1:] if self.is_hot(o)] + [
                v for n, v in named.items() if n in ("src", "source", "value", "values")
            ]
            if "alpha" in named and sources:
                sources[-1] = d.map2(
                    lambda a, b: algebra.multiply(a, b, lambda k: site("alpha")), sources[-1], named["alpha"]
                )
            result = operands[0] if name != "copy" else (operands[1] if len(operands) > 1 else operands[0])
            for source in sources if name != "copy" else []:
                result = d.map2(lambda a, b: algebra.store(a, b, self.is_reciprocal), result, source)
            return result
        if name in (
            "zero",
            "fill",
            "full",
            "full_like",
            "new_full",
            "tensor",
            "as_tensor",
            "new_tensor",
            "scalar_tensor",
            "array",
            "asarray",
        ):
            return self._filled(operands, arguments, frame, at)
        if name in ("masked_fill", "masked_fill_"):
            return operands[0]
        if name in _NONLINEAR:
            if name == "reciprocal":
                return d.map(lambda v: algebra.divide(Const.of(1.0), v, site), operands[0])
            if name in ("norm", "abs") or (name in ("clamp", "clip") and self._is_floor(arguments)):
                return operands[0]
            return d.map(lambda v: algebra.nonlinear(v, name), operands[0])
        if name in _PAIRS and (len(operands) > 1 or "dim" in named or "k" in named):
            first = operands[0]
            if name == "topk":
                first = d.map(lambda v: v if isinstance(v, Tensor | Murky | Power) else self.routed(), first)
            return self.leaf(Tuple((first, self.leaf(Opaque(f"{name} indices")))))
        if name in ("split", "chunk", "unbind", "tensor_split"):
            return self.leaf(Obj(None, "list", {"each": operands[0]}, name))
        return operands[0] if operands else self.leaf(Opaque(name))

    def is_reciprocal(self, site: int) -> bool:
        """Whether a site divides by the factor."""
        return self.sites[site].kind == "reciprocal"

    @staticmethod
    def _is_floor(arguments: Arguments) -> bool:
        return "max" not in arguments.named and len(arguments.positional) < 2

    def _union(self, parts: list[Node], pc: Node) -> Node:
        result: Node | None = None
        for part in parts:
            each = self.each(part, pc, self._members)
            result = each if result is None else self.diagrams.map2(self._pooled_tensors, result, each)
        return result or self.leaf(Opaque("cat()"))

    def _members(self, value: Any, where: Node) -> Node:
        if isinstance(value, Tuple):
            return self._union(list(value.items), where) if value.items else self.leaf(Opaque("()"))
        if isinstance(value, Obj) and value.kind == "list":
            return self.diagrams.map(lambda v: Opaque("[]") if v is UNBOUND else v, value.attrs["each"])
        return self.leaf(value)

    def _pooled_tensors(self, a: Any, b: Any) -> Any:
        return algebra.union([a, b]) or (a if isinstance(a, Opaque) else Opaque(text_of(a)))

    def _filled(self, operands: list[Node], arguments: Arguments, frame: Frame, at: ast.AST) -> Node:
        for value in [*operands, *arguments.named.values()]:
            for inner, _ in self.diagrams.values(value):
                if isinstance(inner, Power):
                    return value
        return self.leaf(Opaque(short(ast.unparse(at)) if hasattr(at, "lineno") else "tensor"))
