"""A `torch` small enough to read: a tensor is one number in a box, so a result shows what a program multiplied.

In-place operators change the box, everything else makes a new one, and views share the box of their tensor, as torch's
do. Nothing here knows about factors: programs run on it as they would on torch.
"""

from __future__ import annotations

import contextlib
from types import ModuleType, SimpleNamespace
from typing import Any


class Tensor:
    """One number; `shape` is whatever the caller says it is."""

    def __init__(self, value: float, shape: tuple[int, ...] = (1, 1)) -> None:
        self.value = value
        self.shape = shape
        self.dtype = "float32"
        self.device = "cpu"

    def set(self, value: float) -> Tensor:
        self.value = value
        return self

    def new(self, value: float) -> Tensor:
        return Tensor(value, self.shape)

    def __mul__(self, other: Any) -> Tensor:
        return self.new(self.value * number(other))

    def __truediv__(self, other: Any) -> Tensor:
        return self.new(self.value / number(other))

    def __rtruediv__(self, other: Any) -> Tensor:
        return self.new(number(other) / self.value)

    def __add__(self, other: Any) -> Tensor:
        return self.new(self.value + number(other))

    def __sub__(self, other: Any) -> Tensor:
        return self.new(self.value - number(other))

    def __imul__(self, other: Any) -> Tensor:
        return self.set(self.value * number(other))

    def __itruediv__(self, other: Any) -> Tensor:
        return self.set(self.value / number(other))

    def __iadd__(self, other: Any) -> Tensor:
        return self.set(self.value + number(other))

    __rmul__, __radd__ = __mul__, __add__
    mul, multiply, div = __mul__, __mul__, __truediv__
    mul_, div_ = __imul__, __itruediv__

    def add(self, other: Any, *, alpha: float = 1.0) -> Tensor:
        return self.new(self.value + alpha * number(other))

    def add_(self, other: Any, *, alpha: float = 1.0) -> Tensor:
        return self.set(self.value + alpha * number(other))

    def copy_(self, other: Any) -> Tensor:
        return self.set(number(other))

    def sum(self, dim: int = -1, keepdim: bool = False) -> Tensor:
        return self.new(self.value)

    def clone(self) -> Tensor:
        return self.new(self.value)

    def view(self, *shape: int) -> Tensor:
        """A view: the same storage, so that a change to it changes the tensor."""
        return self

    @property
    def data(self) -> Tensor:
        return self

    def to(self, dtype: object) -> Tensor:
        return self.new(self.value)

    def contiguous(self) -> Tensor:
        return self


def number(thing: Any) -> float:
    """What a tensor or a plain number is worth; None and the like are the TypeError that torch makes of them."""
    return thing.value if isinstance(thing, Tensor) else float(thing)


class Module:
    """`torch.nn.Module`, as far as calling goes."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.forward(*args, **kwargs)  # type: ignore[attr-defined]


def stored(result: Tensor, out: Tensor | None) -> Tensor:
    return result if out is None else out.copy_(result)


def mul(input: Any, other: Any, *, out: Tensor | None = None) -> Tensor:
    return stored(input * other, out)


def add(input: Tensor, other: Tensor, *, alpha: float = 1.0, out: Tensor | None = None) -> Tensor:
    return stored(input.add(other, alpha=alpha), out)


def div(input: Any, other: Any) -> Tensor:
    return input / other  # type: ignore[no-any-return]


def softmax(input: Tensor, dim: int = -1) -> Tensor:
    return input.new(1.0)


def topk(input: Tensor, k: int, dim: int = -1) -> tuple[Tensor, Tensor]:
    return input.clone(), input.new(0.0)


def linear(input: Tensor, weight: Tensor) -> Tensor:
    return input * weight


def build(platform: str) -> dict[str, ModuleType]:
    """`torch` and its submodules, by dotted name, as built for `cuda`, `hip` or something else."""
    stream = SimpleNamespace(wait_stream=lambda other: None)
    functional = module("torch.nn.functional", linear=linear, softmax=softmax)
    nn = module("torch.nn", Module=Module, Parameter=lambda data, requires_grad=True: data, functional=functional)
    device = module(
        "torch.cuda",
        is_available=lambda: platform in ("cuda", "hip"),
        synchronize=lambda: None,
        Stream=lambda: stream,
        current_stream=lambda: stream,
        stream=lambda which: contextlib.nullcontext(),
    )
    version = SimpleNamespace(cuda="12.9" if platform == "cuda" else None, hip="6.4" if platform == "hip" else None)
    tensors = {
        "zeros_like": lambda like: like.new(0.0),
        "empty_like": lambda like: like.new(0.0),
        "ones": lambda *size: Tensor(1.0),
        "sum": lambda input, dim=-1, keepdim=False: input.sum(),
    }
    torch = module("torch", Tensor=Tensor, nn=nn, cuda=device, version=version, no_grad=contextlib.nullcontext)
    vars(torch).update(
        mul=mul, multiply=mul, add=add, div=div, softmax=softmax, topk=topk, float32="float32", **tensors
    )
    return {m.__name__: m for m in (torch, nn, functional, device)}


def module(name: str, **content: Any) -> ModuleType:
    """A module called `name` with this content."""
    made = ModuleType(name)
    vars(made).update(content)
    return made
