"""Real classes that stand in for those of libraries, where the tree's code derives from them or builds them."""

from __future__ import annotations

import re
from abc import ABCMeta
from collections.abc import Iterator
from typing import Any

from .context import run, where
from .terms import ONE, SHARED, unknown
from .thing import FACTOR_KIND, LIB, NUMBER, TENSOR, Thing, fresh, plain, terms_of, the_factor

PLATFORMS = ("cuda", "hip", "npu", "cpu", "xpu", "musa")
"""What a machine can be; exactly one."""


def platform() -> str:
    """The platform of this world."""
    return str(run().oracle.ask("platform", PLATFORMS))


class _Meta(ABCMeta):
    """Builds a module, or an opaque one where what it computes can't matter."""

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        name = opaque_as(cls, args, kwargs)
        if not name:
            return super().__call__(*args, **kwargs)
        self: Any = object.__new__(cls)  # type: ignore[arg-type]
        vars(self)["_opaque"] = name
        return self


_OPAQUE = re.compile(r"^(?:gate|router|\w*shared_(?:experts?|mlp))$")


def opaque_as(cls: type, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    """The attribute that a router's gate or shared experts are stored in, if they never name the factor; else empty."""
    path, line = where()
    modules = run().tree
    attr = modules.files.loaded[path].assigned.get(line, "") if path in modules.files.loaded else ""
    if not _OPAQUE.match(attr) or any(getattr(one, "_kind", "") == FACTOR_KIND for one in (*args, *kwargs.values())):
        return ""
    for base in cls.__mro__:
        module = modules.find(base.__module__)
        if module is not None and module._file is not None:
            node = module._file.class_node(base.__name__)
            if node is None or run().factor in module._file.segment(node):
                return ""
    run().assume(f"{cls.__name__} in {attr} never names {run().factor}: what it computes isn't run")
    return attr


class Module(metaclass=_Meta):
    """`torch.nn.Module`, as far as models use it."""

    training = False

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Take anything: what a library's base class does with it doesn't matter here."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run `forward`, unless the module is opaque."""
        if "_opaque" in vars(self):
            return self._opaque_result(args, kwargs)
        return self.forward(*args, **kwargs)

    def _opaque_result(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        name = vars(self)["_opaque"]
        terms = ONE.tagged(SHARED) if "shared" in name else ONE
        if any(isinstance(one, Thing) and terms_of(one).carries for one in (*args, *kwargs.values())):
            terms = unknown(f"{name} takes a value that carries the factor, and isn't run")
        return fresh(f"{name}(…)", terms)

    def __setattr__(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, run().tree.chosen(self, name, value))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "forward":
            raise AttributeError(name)
        if name == run().factor:
            return the_factor(f"self.{name}")
        told = f"self.{name}"
        run().assume(f"{type(self).__name__}.{name} is set from outside (its constructor doesn't set it)")
        value = Thing(told)
        object.__setattr__(self, name, value)
        return value

    def register_parameter(self, name: str, value: Any) -> None:
        """Keep it as an attribute; loading fills it, so it isn't a buffer to write to."""
        object.__setattr__(self, name, filled(value))

    def register_buffer(self, name: str, value: Any, persistent: bool = True) -> None:
        """Keep it as an attribute."""
        object.__setattr__(self, name, filled(value))

    def add_module(self, name: str, value: Any) -> None:
        """Keep it as an attribute."""
        setattr(self, name, value)

    register_module = add_module

    def _self(self, *args: Any, **kwargs: Any) -> Any:
        return self

    to = cuda = cpu = eval = train = half = float = bfloat16 = requires_grad_ = apply = type = _self

    def _nothing(self, *args: Any, **kwargs: Any) -> Any:
        return plain("handle")

    register_forward_hook = register_forward_pre_hook = load_state_dict = zero_grad = _nothing

    def children(self) -> Iterator[Any]:
        """Modules among the attributes."""
        return iter([one for one in vars(self).values() if isinstance(one, Module)])

    def modules(self) -> Iterator[Any]:
        """Itself and the modules below."""
        return iter([self, *(below for one in self.children() for below in one.modules())])

    def named_parameters(self, *args: Any, **kwargs: Any) -> Iterator[Any]:
        """Parameters among the attributes."""
        return iter([(name, one) for name, one in vars(self).items() if isinstance(one, Parameter)])

    named_buffers = named_parameters

    def parameters(self, *args: Any) -> Iterator[Any]:
        """Parameters among the attributes."""
        return iter([one for _, one in self.named_parameters()])


class ModuleList(Module, list):  # type: ignore[type-arg]
    """`torch.nn.ModuleList`."""

    def __init__(self, modules: Any = ()) -> None:
        list.__init__(self, modules)


class ModuleDict(Module, dict):  # type: ignore[type-arg]
    """`torch.nn.ModuleDict`."""

    def __init__(self, modules: Any = ()) -> None:
        dict.__init__(self, modules)


class Sequential(ModuleList):
    """`torch.nn.Sequential`."""

    def __init__(self, *modules: Any) -> None:
        list.__init__(self, modules)

    def forward(self, x: Any) -> Any:
        """One after the other."""
        for one in self:
            x = one(x)
        return x


class Identity(Module):
    """`torch.nn.Identity`."""

    def forward(self, x: Any, *args: Any, **kwargs: Any) -> Any:
        """The same."""
        return x


class Parameter(Thing):
    """`torch.nn.Parameter`; the tree may derive from it."""

    def __init__(self, data: Any = None, *args: Any, **kwargs: Any) -> None:
        Thing.__init__(self, data._name if isinstance(data, Thing) else "parameter", TENSOR)
        self._store.weight = True

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        """Take anything: subclasses hand over what they like."""
        self = object.__new__(cls)
        Thing.__init__(self, "parameter", TENSOR)
        self._store.weight = True
        return self


class Function:
    """`torch.autograd.Function`: what is applied is `forward`."""

    @classmethod
    def apply(cls, *args: Any) -> Any:
        """Run `forward`."""
        forward: Any = cls.forward  # type: ignore[attr-defined]
        return forward(plain("ctx"), *args)


class Kernel(Thing):
    """A function that a compiler such as triton takes over; called with or without a grid."""

    __slots__ = ("_function",)

    def __init__(self, function: Any) -> None:
        Thing.__init__(self, getattr(function, "__name__", "kernel"), LIB)
        object.__setattr__(self, "_function", function)


def filled(value: Any) -> Any:
    """Memory that loading the weights fills."""
    if isinstance(value, Thing) and value._store.fresh:
        value._store.write(ONE)
    if isinstance(value, Thing):
        value._store.allocated = False
        value._store.weight = True
    return value


class Library:
    """Base of the stand-ins for classes of libraries: takes any argument, has any attribute."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Take anything."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        value = Thing(f"{type(self).__name__}.{name}")
        object.__setattr__(self, name, value)
        return value


_LIBRARY: dict[str, type] = {}


def library_base(name: str) -> type:
    """A class to derive from in the place of one that isn't in the tree."""
    if name.endswith(("Exception", "Error")):
        return Exception
    return _LIBRARY.setdefault(name, type(name.rpartition(".")[2], (Library,), {"__library__": name}))


VERSIONS = {"cuda": "12.8", "hip": "6.4", "musa": "4.3"}
"""Versions taken where no fact gives one."""


def _version(name: str) -> Any:
    """`torch.version.cuda` and its kind: None on another platform."""
    if platform() != name:
        return None
    fact = run().oracle.fact(f"torch.version.{name}")
    if fact is None:
        run().assume(f"torch.version.{name} is {VERSIONS[name]} (no fact gives it)")
    return str(fact or VERSIONS[name])


DTYPES = """float32 float64 float16 bfloat16 float half double int8 int16 int32 int64 uint8 uint16 uint32 uint64 int
long short bool float8_e4m3fn float8_e5m2 float8_e4m3fnuz float8_e5m2fnuz float8_e8m0fnu float4_e2m1fn_x2""".split()


class Dtype:
    """`torch.float32` and its kind: each equal to itself alone."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.is_floating_point = "float" in name or name in ("half", "double")

    def __repr__(self) -> str:
        return f"torch.{self.name}"

    @property
    def itemsize(self) -> Any:
        """Its size isn't looked at."""
        return plain(f"torch.{self.name}.itemsize", NUMBER)


def _available(*names: str) -> Any:
    def is_available() -> bool:
        return platform() in names

    return is_available


SPECIAL: dict[str, Any] = {
    **{f"torch.{name}": Dtype(name) for name in DTYPES},
    "torch.nn.Module": Module,
    "torch.nn.ModuleList": ModuleList,
    "torch.nn.ModuleDict": ModuleDict,
    "torch.nn.Sequential": Sequential,
    "torch.nn.Identity": Identity,
    "torch.nn.Parameter": Parameter,
    "torch.nn.parameter.Parameter": Parameter,
    "torch.autograd.Function": Function,
    "torch.cuda.is_available": _available("cuda", "hip"),
    "torch.xpu.is_available": _available("xpu"),
    "torch.npu.is_available": _available("npu"),
    "torch.musa.is_available": _available("musa"),
    "torch.hpu.is_available": _available(),
    "torch.mps.is_available": _available(),
    "torch.backends.mps.is_available": _available(),
    **{f"torch.version.{name}": lambda name=name: _version(name) for name in VERSIONS},
}
for _first, _same in (("float", "float32"), ("half", "float16"), ("double", "float64"), ("int", "int32")):
    SPECIAL[f"torch.{_first}"] = SPECIAL[f"torch.{_same}"]
SPECIAL["torch.long"], SPECIAL["torch.short"] = SPECIAL["torch.int64"], SPECIAL["torch.int16"]
