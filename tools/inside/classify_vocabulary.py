"""Names that decide a class: element types, tensor methods, synchronisation, logging; and what a name is about."""

from __future__ import annotations

import ast
import re

from .classify_units import show

DTYPES: dict[str, tuple[int, int, str]] = {
    # name: bits in all, bits of precision, family
    "float64": (64, 53, "float"), "double": (64, 53, "float"), "fp64": (64, 53, "float"),
    "float32": (32, 24, "float"), "float": (32, 24, "float"), "fp32": (32, 24, "float"),
    "tfloat32": (19, 11, "float"), "tf32": (19, 11, "float"),
    "float16": (16, 11, "float"), "half": (16, 11, "float"), "fp16": (16, 11, "float"),
    "__half": (16, 11, "float"), "half_t": (16, 11, "float"), "__half2": (16, 11, "float"), "half2": (16, 11, "float"),
    "bfloat16": (16, 8, "float"), "bf16": (16, 8, "float"), "__nv_bfloat16": (16, 8, "float"),
    "bfloat16_t": (16, 8, "float"), "__nv_bfloat162": (16, 8, "float"), "nv_bfloat16": (16, 8, "float"),
    "float8_e4m3fn": (8, 4, "float"), "float8_e4m3fnuz": (8, 4, "float"), "float8_e4m3": (8, 4, "float"),
    "float8e4nv": (8, 4, "float"), "float8e4b8": (8, 4, "float"), "fp8_e4m3": (8, 4, "float"),
    "__nv_fp8_e4m3": (8, 4, "float"), "fp8": (8, 4, "float"), "fp8_e4m3fn": (8, 4, "float"),
    "float8_e5m2": (8, 3, "float"), "float8_e5m2fnuz": (8, 3, "float"), "float8e5": (8, 3, "float"),
    "__nv_fp8_e5m2": (8, 3, "float"), "fp8_e5m2": (8, 3, "float"), "float8_e8m0fnu": (8, 1, "float"),
    "float4_e2m1fn_x2": (4, 2, "float"), "fp4": (4, 2, "float"), "nvfp4": (4, 2, "float"), "mxfp4": (4, 2, "float"),
    "int64": (64, 63, "int"), "long": (64, 63, "int"), "int64_t": (64, 63, "int"),
    "int32": (32, 31, "int"), "int": (32, 31, "int"), "int32_t": (32, 31, "int"),
    "int16": (16, 15, "int"), "short": (16, 15, "int"), "int16_t": (16, 15, "int"),
    "int8": (8, 7, "int"), "int8_t": (8, 7, "int"), "int4": (4, 3, "int"), "char": (8, 7, "int"),
    "uint64": (64, 64, "int"), "uint64_t": (64, 64, "int"), "size_t": (64, 64, "int"),
    "uint32": (32, 32, "int"), "uint32_t": (32, 32, "int"),
    "uint16": (16, 16, "int"), "uint16_t": (16, 16, "int"), "uint8": (8, 8, "int"), "uint8_t": (8, 8, "int"),
    "bool": (8, 1, "bool"),
}  # fmt: skip

DTYPE_ROOTS = frozenset("torch np numpy tl jnp jax triton cp mx cutlass ml_dtypes language".split())
CAST_METHODS = frozenset("float half double bfloat16 int long short char byte bool".split())

METHOD_TYPES = {"float": "float32", "half": "float16", "double": "float64", "int": "int32", "long": "int64",
                "short": "int16", "char": "int8", "byte": "uint8"}  # fmt: skip
_SETS: dict[str, str] = {
    "layout_changed": (
        "contiguous transpose permute view reshape flatten unflatten squeeze unsqueeze expand expand_as as_strided "
        "stride swapaxes swapdims movedim moveaxis t view_as reshape_as rearrange is_contiguous trans"
    ),
    "reduction_changed": (
        "sum mean max min amax amin prod logsumexp argmax argmin any all std var reduce all_reduce "
        "reduce_scatter all_gather all_to_all reduce_scatter_tensor all_gather_into_tensor "
        "tensor_model_parallel_all_reduce tensor_model_parallel_all_gather moe_tensor_model_parallel_all_reduce "
        "attention_tensor_model_parallel_all_reduce attn_tp_all_reduce cumsum softmax log_softmax topk"
    ),
    "mask_changed": "masked_fill masked_fill_ where tril triu masked_select masked_scatter masked_scatter_ tril_ triu_",
    "index_changed": (
        "arange gather scatter scatter_ scatter_add_ index_select index_copy_ index_add_ index_put_ index_fill_ take "
        "take_along_dim take_along_axis narrow searchsorted program_id select slice_scatter roll"
    ),
    "sync": (
        "synchronize barrier wait_event wait_stream record_event record_stream block_until_ready debug_barrier wait "
        "__syncthreads __syncwarp cudaDeviceSynchronize cudaStreamSynchronize cudaStreamWaitEvent cudaEventRecord "
        "cudaEventSynchronize cp_async_wait cp_async_wait_all cp_async_wait_group __threadfence "
        "cudaGridDependencySynchronize named_barrier_sync griddepcontrol_wait gdc_wait monitored_barrier "
        "current_stream_wait wait_tensor mbarrier_wait"
    ),
    "multiply": "mul mul_ multiply multiply_",
    "divide": "div div_ true_divide divide divide_",
    "reciprocal": "reciprocal reciprocal_",
    "plus": "add add_ sub sub_ subtract subtract_",
}
CALLS: dict[str, frozenset[str]] = {name: frozenset(text.split()) for name, text in _SETS.items()}

DIMENSION_WORDS = frozenset("dim axis keepdim keepdims dims axes".split())
INDEX_NAMES = frozenset(
    "offset offsets offs off idx index indices indexes indptr pos position positions slot slots loc locs ptr ptrs "
    "cursor start end begin stop stride strides".split()
)
SIZE_NAMES = frozenset(
    "size sizes num len length lengths count block blocks dim dims head heads shape numel bytes n m k bs width height "
    "max min total capacity nbytes world rank tokens layers pages chunk workers stride strides grid bits".split()
)
LOG_ROOTS = frozenset("logger logging log warnings _logger LOG LOGGER rank0_log".split())
LOG_CALLS = re.compile(
    r"^(print\w*|log_\w+|warn\w*|\w*_warn(ing)?|rank0_log|debug|info|warning(_once)?|info_once|exception|critical)$"
)
CACHE_DECORATORS = re.compile(r"(^|\.)(lru_cache|cache|cached_property|memoize\w*|\w*cache\w*)$")
ENV_READERS = re.compile(
    r"(^|\.)(Env[A-Z]\w*|getenv|environ\.get|get_bool_env_var|get_int_env_var|\w*env_var\w*|\w+_from_env|env_bool|env_int)$"
)
GETTERS = frozenset("get pop getattr setdefault".split())
DEFAULT_WORDS = frozenset("default default_factory".split())


def parts(name: str) -> list[str]:
    """Lower-case words of an identifier: `topk_idsMax` gives topk, ids, max."""
    return [word.lower() for word in re.split(r"_|(?<=[a-z0-9])(?=[A-Z])", name) if word]


def dtype_of(node: object) -> str:
    """The element type a node names (`torch.bfloat16`, `"float16"`, `tl.float32`), or an empty string."""
    if isinstance(node, ast.Attribute) and node.attr in DTYPES:
        return node.attr if show(node.value).split(".")[0] in DTYPE_ROOTS else ""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        word = node.value.removeprefix("torch.")
        return (
            word if word in DTYPES and word not in ("float", "int", "long", "short", "char", "bool", "double") else ""
        )
    return ""


def is_dtype(node: object) -> bool:
    """Whether a node denotes an element type, known by name or not (`x.dtype`, `self.compute_dtype`)."""
    name = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
    return bool(dtype_of(node)) or name == "dtype" or name.endswith("_dtype")


def cast_target(call: ast.Call) -> str | None:
    """What a call casts to: a type's name, source text of an unknown type, or None when it is no cast."""
    func = call.func
    if not isinstance(func, ast.Attribute):
        return None
    if func.attr in CAST_METHODS and not call.args and not call.keywords and show(func.value) not in DTYPE_ROOTS:
        return METHOD_TYPES.get(func.attr, func.attr)
    if func.attr not in ("to", "astype", "type", "type_as", "view"):
        return None
    given = [*call.args, *(word.value for word in call.keywords if word.arg == "dtype")]
    found = [arg for arg in given if is_dtype(arg)]
    if func.attr == "type_as" and call.args:
        return f"{show(call.args[0])}.dtype"
    return (dtype_of(found[0]) or show(found[0])) if found else None


def describe_cast(before: str, after: str) -> str:
    """`float32 → bfloat16: downcast, 32 to 16 bits (24 to 8 of precision)`."""
    arrow = f"{before or '?'} → {after or '?'}"
    old, new = DTYPES.get(before.removeprefix("torch.")), DTYPES.get(after.removeprefix("torch."))
    if not old or not new:
        return arrow
    if old[2] != new[2]:
        return f"{arrow}: {old[2]} to {new[2]}, {old[0]} to {new[0]} bits"
    word = "downcast" if new[1] < old[1] else "upcast" if new[1] > old[1] else "same precision"
    return f"{arrow}: {word}, {old[0]} to {new[0]} bits ({old[1]} to {new[1]} of precision)"


def callee(node: object) -> str:
    """Last name of what is called: `f` of `a.b.f(x)`; empty for anything else."""
    func = node.func if isinstance(node, ast.Call) else node
    return func.attr if isinstance(func, ast.Attribute) else func.id if isinstance(func, ast.Name) else ""


def is_log(node: object) -> bool:
    """Whether a call only tells a human something."""
    if not isinstance(node, ast.Call):
        return False
    if isinstance(node.func, ast.Attribute):
        root = show(node.func.value).split(".")[-1].split("(")[0]
        return root in LOG_ROOTS or (root == "self" and bool(re.match(r"log_(info|debug|warn)", node.func.attr)))
    return bool(LOG_CALLS.match(callee(node)))


def is_sync(node: object) -> bool:
    """Whether a call orders work on a device or between processes."""
    name = callee(node)
    return name in CALLS["sync"] and (name != "wait" or not getattr(node, "keywords", []))


def call_kind(node: ast.Call) -> str:
    """The class that adding or removing this call has, where one narrower than call_added fits; else empty."""
    name = callee(node)
    if cast_target(node) is not None:
        return "dtype_changed"
    if isinstance(node.func, ast.Name) and not re.search(r"all_|_reduce|reduce_|rearrange|mask", name):
        return ""
    for kind in ("layout_changed", "reduction_changed", "mask_changed", "index_changed"):
        if name in CALLS[kind]:
            return kind
    return "mask_changed" if {"mask", "masked"} & set(parts(name)) and name not in ("get_mask",) else ""


def is_cache_key(name: str) -> bool:
    """Whether a name holds what identifies a cached entry (not the keys of attention, nor a cache itself)."""
    words = parts(name)
    last = words[-1] if words else ""
    if {"hash", "hashes", "digest", "fingerprint", "sha256"} & set(words):
        return last not in ("topk", "fn", "func", "module", "table", "cls") and "topk" not in words
    if last in ("salt",) or words == ["extra", "key"]:
        return True
    return last in ("key", "keys") and "cache" in words and words.index("cache") < len(words) - 1


def topic(name: str) -> str:
    """What a value is by its name, as the class that changes of it have: mask, index, sizes; else empty."""
    words = parts(name)
    if {"mask", "masks", "masked", "causal"} & set(words):
        return "mask_changed"
    if words and (words[-1] in INDEX_NAMES or words[0] in ("offs", "idx")):
        return "index_changed"
    return ""


def is_size(node: ast.AST) -> bool:
    """Whether an expression counts things (a shape, a length, an integer), so that scaling it scales no value."""
    if isinstance(node, ast.Constant):
        return isinstance(node.value, int)
    if isinstance(node, ast.Subscript):
        return is_size(node.value)
    if isinstance(node, ast.Call):
        return callee(node) in ("len", "size", "numel", "cdiv", "range", "element_size", "int", "stride", "dim")
    if isinstance(node, ast.BinOp):
        return is_size(node.left) and is_size(node.right)
    name = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
    return bool(set(parts(name)) & (SIZE_NAMES | INDEX_NAMES)) or (name.isupper() and bool(name))
