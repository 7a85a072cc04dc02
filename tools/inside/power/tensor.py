"""Tensor methods and torch functions on stand-ins, by what they do to the powers."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable
from typing import Any

from . import arith
from .context import run
from .storage import Storage
from .terms import EMPTY, ONE, ROUTED, ZERO, Terms, unknown
from .thing import NUMBER, TENSOR, Thing, fresh, plain, say, terms_of, view

Method = Callable[..., Any]

VIEWS = """view squeeze unsqueeze permute transpose t movedim swapaxes expand expand_as narrow detach view_as select
unflatten as_strided squeeze_ unsqueeze_ t_ requires_grad_ untyped_storage broadcast_to""".split()
"""Share the memory of the tensor they are called on."""

MAYBE = """contiguous to reshape flatten float half bfloat16 double type type_as cuda cpu ravel reshape_as npu xpu
pin_memory""".split()
"""Share it, or copy; which isn't known."""

SAME = """clone sum mean amax amin abs neg negative gather index_select take take_along_dim repeat repeat_interleave
roll flip cumsum nansum norm masked_select median trace tril triu diagonal diag_embed item tolist numpy relu dropout
scatter_reduce nan_to_num unfold absolute positive linalg_norm
vector_norm matrix_norm leaky_relu rot90 std""".split()
"""Give a new value of the same powers: linear, or at least homogeneous in a positive factor."""

BENT = """softmax sigmoid exp log log2 log10 log1p expm1 tanh silu gelu softplus clamp clip clamp_min clamp_max round
floor ceil trunc sin cos erf log_softmax logsumexp mish elu selu hardswish var cumprod prod histc logit glu
sinh cosh hardtanh relu6 frac fmod remainder""".split()
"""Don't commute with a factor."""

PLAIN = """size numel dim stride ndimension element_size data_ptr is_contiguous argmax argmin argsort nonzero eq ne lt
le gt ge isnan isinf isfinite any all is_floating_point nelement get_device bincount record_stream logical_and
logical_or logical_not sign storage_offset equal allclose searchsorted bucketize isin count_nonzero unique""".split()
"""Say something about a tensor that no factor changes."""

ALLOCATE = "empty zeros empty_like zeros_like new_empty new_zeros empty_strided new_empty_strided".split()
FILLED = """ones full arange tensor rand randn randint linspace eye ones_like full_like rand_like randn_like new_ones
new_full new_tensor as_tensor randperm one_hot scalar_tensor from_numpy randint_like""".split()
UNIONS = "cat concat concatenate stack hstack vstack".split()
PRODUCTS = (
    "matmul mm bmm einsum linear dot mv addmv_ outer inner baddbmm_ kron embedding conv1d conv2d _scaled_mm".split()
)
NORMS = "normalize layer_norm rms_norm group_norm".split()
BINARY = {
    "mul": "*", "multiply": "*", "div": "/", "divide": "/", "true_divide": "/", "add": "+", "sub": "-",
    "subtract": "-", "maximum": "+", "minimum": "+", "max": "+", "min": "+", "fmax": "+", "fmin": "+", "lerp": "+",
    "floor_divide": "//", "bitwise_and": "&", "bitwise_or": "|",
}  # fmt: skip
PAIRS = "max min topk sort kthvalue cummax cummin mode".split()


def out_to(kwargs: dict[str, Any], result: Any) -> Any:
    """`out=`: the result goes into that tensor."""
    out = kwargs.get("out")
    if isinstance(out, Thing):
        out._store.write(terms_of(result), out._key)
        return out
    return result


def _view(name: str) -> Method:
    return lambda x, *args, **kwargs: view(x, _called(x, name, args)) if isinstance(x, Thing) else x


def _maybe(name: str) -> Method:
    def method(x: Any, *args: Any, **kwargs: Any) -> Any:
        result = Thing(_called(x, name, args), _tensor(x), Storage(terms_of(x)))
        source = x._store if isinstance(x, Thing) else None
        result._store.allocated = bool(source and source.allocated)
        if source is not None and source.fresh:
            return view(x, result._name)
        result._store.origin = (source, x._key) if source is not None else None
        return result

    return method


def _tensor(x: Any) -> str:
    return x._kind if isinstance(x, Thing) and x._kind != "?" else TENSOR


def _same(name: str) -> Method:
    return lambda x, *args, **kwargs: out_to(kwargs, fresh(_called(x, name, args), terms_of(x), _tensor(x)))


def _bent(name: str) -> Method:
    return lambda x, *args, **kwargs: out_to(kwargs, fresh(_called(x, name, args), terms_of(x).bent(name), _tensor(x)))


def _plain(name: str) -> Method:
    return lambda x, *args, **kwargs: plain(_called(x, name, args), NUMBER)


def _called(x: Any, name: str, args: tuple[Any, ...]) -> str:
    return f"{say(x)}.{name}({', '.join(say(one) for one in args[:4])})"


def _allocate(terms: Terms) -> Callable[[str], Method]:
    def make(name: str) -> Method:
        def method(*args: Any, **kwargs: Any) -> Any:
            value = kwargs.get("fill_value", args[1] if name == "full" and len(args) > 1 else None)
            value = args[0] if name in ("tensor", "as_tensor", "scalar_tensor", "new_tensor") and args else value
            store = Storage(terms_of(value) if value is not None else terms, allocated=True)
            store.fresh = terms == ZERO and value is None
            shape = kwargs.get("size", args[0] if args else ())
            if isinstance(shape, tuple | list) and 0 in [one for one in shape if isinstance(one, int)]:
                store.write(ONE.tagged(EMPTY))
            return Thing(f"{name}@{run().oracle.where()}", TENSOR, store)

        return method

    return make


def _union(name: str) -> Method:
    def method(parts: Any, *args: Any, **kwargs: Any) -> Any:
        terms = sum((joint(one) for one in parts), ZERO) if isinstance(parts, list | tuple) else terms_of(parts)
        return out_to(kwargs, fresh(f"{name}({say(parts)})", terms))

    return method


def joint(part: Any) -> Terms:
    """A piece that is joined to others: one divided by the factor stands for a fused shared expert."""
    terms = terms_of(part)
    if terms.carries and not terms.why and max(terms.powers) < 0:
        run().assume("a part written with one over the factor belongs to a fused shared expert")
        return terms.tagged("shared")
    return terms


def _product(name: str) -> Method:
    def method(*args: Any, **kwargs: Any) -> Any:
        things = [one for one in (*args, *kwargs.values()) if isinstance(one, Thing)]
        nested = [one for one in args if isinstance(one, list | tuple) for one in one if isinstance(one, Thing)]
        terms = ONE
        for one in (*things[:3], *nested):
            terms = terms * terms_of(one) if one is not kwargs.get("out") else terms
        return out_to(kwargs, fresh(f"{name}({', '.join(map(say, things[:2]))})", terms))

    return method


def _norm(name: str) -> Method:
    def method(x: Any, *args: Any, **kwargs: Any) -> Any:
        if terms_of(x).carries:
            run().site("renormalised")
        same = len(terms_of(x).powers) <= 1 and not terms_of(x).why
        return fresh(_called(x, name, ()), terms_of(x).plain() if same else terms_of(x).bent(name))

    return method


def _binary(name: str, op: str) -> Method:
    def method(x: Any, *args: Any, **kwargs: Any) -> Any:
        other = args[0] if args else kwargs.get("other")
        if name in PAIRS and not isinstance(other, Thing):
            return _paired(name)(x, *args, **kwargs)
        if kwargs.get("alpha") is not None:
            other = scaled_alpha(other, kwargs["alpha"])
        result = arith.binary(op, x, other)
        return out_to(kwargs, fresh(result._name, terms_of(result), TENSOR) if isinstance(result, Thing) else result)

    return method


def scaled_alpha(other: Any, alpha: Any) -> Any:
    """What `alpha=` adds: the other operand times alpha."""
    if arith.is_factor(alpha):
        run().site("alpha")
    return fresh(f"{say(alpha)} * {say(other)}", terms_of(other) * terms_of(alpha))


Pair = namedtuple("Pair", ["values", "indices"])


def _paired(name: str) -> Method:
    def method(x: Any, *args: Any, **kwargs: Any) -> Any:
        terms = terms_of(x).tagged(ROUTED) if name == "topk" else terms_of(x)
        values = fresh(_called(x, name, args), terms)
        if name in ("max", "min") and not args and "dim" not in kwargs:
            return values
        return Pair(values, plain(_called(x, name, args) + ".indices", TENSOR))

    return method


def _pieces(name: str) -> Method:
    """`chunk`, `split` and `unbind`: each piece is a part of its own of the same memory."""

    def method(x: Any, *args: Any, **kwargs: Any) -> Any:
        count = args[0] if args else kwargs.get("chunks", kwargs.get("split_size_or_sections"))
        sizes = len(count) if isinstance(count, list | tuple) else count if name == "chunk" else None
        if isinstance(sizes, int):
            return tuple(view(x, f"{say(x)}.{name}[{n}]", ("each", f"{name}{n}")) for n in range(sizes))
        return view(x, _called(x, name, args))

    return method


def inverse(x: Any, *args: Any, **kwargs: Any) -> Any:
    """`reciprocal`: one over the value."""
    return arith.binary("/", 1.0, x)


def root(name: str, sign: int) -> Method:
    """`sqrt`, `rsqrt`, `square`: a value that carries the factor takes no half powers."""
    exponent = 2 * sign if name == "square" else 0.5 * sign
    return lambda x, *args, **kwargs: fresh(_called(x, name, ()), terms_of(x).power(exponent), _tensor(x))


def where(condition: Any, x: Any = None, y: Any = None, **kwargs: Any) -> Any:
    """`torch.where(c, x, y)`: either may be there."""
    if x is None:
        return plain(f"where({say(condition)})", TENSOR)
    return fresh(f"where({say(x)}, {say(y)})", terms_of(x) + terms_of(y))


def masked_fill(x: Any, mask: Any, value: Any = 0, **kwargs: Any) -> Any:
    """Where the mask is, the value; else what was."""
    return fresh(f"masked_fill({say(x)})", terms_of(x) + terms_of(value))


def addcmul(x: Any, a: Any, b: Any, value: Any = 1, **kwargs: Any) -> Any:
    """`x + value * a * b`."""
    for one in (a, b, value):
        if arith.is_factor(one):
            run().site("multiply" if one is not value else "alpha")
    return fresh(f"addcmul({say(x)}, {say(a)}, {say(b)})", terms_of(x) + terms_of(a) * terms_of(b) * terms_of(value))


def addmm(x: Any, a: Any, b: Any, beta: Any = 1, alpha: Any = 1, **kwargs: Any) -> Any:
    """`beta * x + alpha * (a @ b)`."""
    for one in (alpha, beta):
        if arith.is_factor(one):
            run().site("alpha")
    terms = terms_of(x) * terms_of(beta) + terms_of(a) * terms_of(b) * terms_of(alpha)
    return fresh(f"addmm({say(a)}, {say(b)})", terms)


def attend(query: Any, key: Any, value: Any, *args: Any, scale: Any = None, **kwargs: Any) -> Any:
    """`scaled_dot_product_attention`: what multiplies the logits isn't linear in the output."""
    if arith.is_factor(scale) or terms_of(scale).carries or terms_of(query).carries or terms_of(key).carries:
        return fresh("attention", unknown("a softmax takes a value that carries the factor"))
    return fresh("attention", terms_of(value))


ONE_OPERAND = frozenset([*VIEWS, *MAYBE, *SAME, *BENT, *PLAIN, *NORMS])
"""Methods of which no other operand is a tensor whose power counts."""

METHODS: dict[str, Method] = {
    **{name: _view(name) for name in VIEWS},
    **{name: _maybe(name) for name in MAYBE},
    **{name: _same(name) for name in SAME},
    **{name: _bent(name) for name in BENT},
    **{name: _plain(name) for name in PLAIN},
    **{name: _allocate(ZERO)(name) for name in ALLOCATE if "new" in name},
    **{name: _allocate(ONE)(name) for name in FILLED if "new" in name},
    **{name: _product(name) for name in PRODUCTS},
    **{name: _norm(name) for name in NORMS},
    **{name: _paired(name) for name in PAIRS},
    **{name: _binary(name, op) for name, op in BINARY.items()},
    **{name: _pieces(name) for name in ("chunk", "split", "unbind", "tensor_split")},
    **{name: root(name, 1) for name in ("sqrt", "square")},
    "rsqrt": root("rsqrt", -1),
    "reciprocal": inverse,
    "where": lambda x, c, y, **kwargs: where(c, x, y),
    "masked_fill": masked_fill,
    "addcmul": addcmul,
    "addmm": addmm,
    "baddbmm": addmm,
    "pow": lambda x, e, **kwargs: arith.raised(x, e),
    "rsub": lambda x, y, **kwargs: arith.binary("-", y, x),
}

FUNCTIONS: dict[str, Method] = {
    **METHODS,
    **{name: _allocate(ZERO)(name) for name in ALLOCATE},
    **{name: _allocate(ONE)(name) for name in FILLED},
    **{name: _union(name) for name in UNIONS},
    "where": where,
    "addcdiv": lambda x, a, b, value=1, **kwargs: addcmul(x, a, arith.binary("/", 1.0, b), value),
    "scaled_dot_product_attention": attend,
}
