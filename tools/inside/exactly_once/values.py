"""What a variable can hold: constants, the factor's powers, routed tensors, objects, the unknown."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Union

if TYPE_CHECKING:
    from .diagram import Node
    from .program import Class, Function, Module


@dataclass(frozen=True)
class Const:
    """A Python constant. `kind` keeps 1, 1.0 and True apart."""

    value: Any
    kind: str = ""

    @staticmethod
    def of(value: Any) -> Const:
        """The constant of a Python value."""
        return Const(value, type(value).__name__)


NONE = Const.of(None)
TRUE = Const.of(True)
FALSE = Const.of(False)


@dataclass(frozen=True)
class Member:
    """A member of an Enum of the tree."""

    owner: Class
    name: str


@dataclass(frozen=True)
class Opaque:
    """A value that isn't known and doesn't carry the factor; equal text means equal value.

    Attributes:
        text: the expression that gives it, as a reader knows it.
        hint: the class that an annotation promises.
        number: whether an annotation or a use says that it is an integer or a float.
    """

    text: str
    hint: Class | None = None
    number: bool = False


@dataclass(frozen=True)
class Power:
    """A number that carries the factor to the power `k`, not 0.

    Attributes:
        where: the sites at which reciprocals were taken.
    """

    k: int


@dataclass(frozen=True)
class Term:
    """One summand of a tensor.

    Attributes:
        routed: whether it comes from the router or the routed experts.
        k: how often the factor is applied to it.
        sites: indices of the places that applied it, in order.
        part: what else it is that rides along: see `algebra.FUSED`.
    """

    routed: bool
    k: int
    sites: tuple[int, ...] = ()
    part: str = ""


@dataclass(frozen=True)
class Tensor:
    """A sum of terms of which at least one is routed or carries the factor."""

    terms: frozenset[Term]


@dataclass(frozen=True)
class Murky:
    """A value that may carry the factor, nobody can say how often."""

    reason: str


@dataclass(frozen=True)
class Tuple:
    """A tuple or list of known length."""

    items: tuple[Node, ...]


@dataclass(eq=False)
class Obj:
    """A mutable object: an instance, a dict or a list of unknown length. Compared by identity.

    Attributes:
        owner: its class, None for a plain dict or list.
        kind: `instance`, `dict` or `list`.
        attrs: attributes, or the items of a dict by their constant keys (as `repr`); a list has one, `each`.
        text: how a reader would call it.
        open: whether attributes that aren't known may exist all the same.
        pending: the constructor's call, put off until an attribute is asked for.
    """

    owner: Class | None
    kind: str
    attrs: dict[str, Node]
    text: str
    open: bool = False
    pending: Any = None


@dataclass(frozen=True)
class ClassValue:
    """A class of the tree."""

    owner: Class


@dataclass(frozen=True)
class FunctionValue:
    """A function of the tree, with what it is bound to."""

    function: Function
    bound: Any = None
    closure: Any = None
    frozen: tuple[Any, ...] = ()


@dataclass(frozen=True)
class ModuleValue:
    """A module of the tree."""

    module: Module


@dataclass(frozen=True)
class External:
    """A name that leads out of the tree."""

    dotted: str

    @property
    def name(self) -> str:
        """The last part of the dotted name."""
        return self.dotted.rsplit(".", 1)[-1]


@dataclass(frozen=True)
class Bound:
    """A method of something that isn't an instance of the tree: of a tensor, a dict, an unknown object."""

    base: Any
    name: str


@dataclass(frozen=True)
class Partial:
    """`functools.partial` of something that isn't a function of the tree."""

    callee: Any
    first: tuple[Any, ...]
    named: tuple[tuple[str, Any], ...]


@dataclass(frozen=True)
class Unbound:
    """A variable or attribute that no statement has set."""


UNBOUND = Unbound()

Value = Union[  # noqa: UP007 - evaluated at run time on every supported version
    Const,
    Member,
    Opaque,
    Power,
    Tensor,
    Murky,
    Tuple,
    Obj,
    ClassValue,
    FunctionValue,
    ModuleValue,
    External,
    Bound,
    Unbound,
]


def tensor(*terms: Term) -> Tensor:
    """A tensor of these terms."""
    return Tensor(frozenset(terms))
