"""Unknown objects of which the class is known: from an annotation, or from a fact such as `type(quant_method)`."""

from __future__ import annotations

import ast
import enum
import inspect
import types
from collections.abc import Sequence
from typing import Any

from .bases import PLATFORMS, platform
from .context import fail, run
from .files import SourceFile
from .oracle import Impossible
from .terms import FACTOR
from .thing import ANY, FACTOR_KIND, NUMBER, TENSOR, Thing, plain, say, the_factor

_NUMBERS = {"int", "float", "complex"}
HOLDERS = frozenset({"Dict", "List", "Tuple", "Set", "Sequence", "Iterable", "Mapping", "dict", "list", "tuple", "set"})
"""Names of annotations for what holds several values."""
_OPEN = {"Any", "object", "Callable", "str", "bytes", "Dict", "List", "Tuple", "dict", "list", "tuple", "Set", "Type"}


def variable_annotation(file: SourceFile, numbers: Sequence[int], name: str) -> str | None:
    """How a module's variable is annotated, "" if it isn't; None if it isn't a plain variable."""
    for number in numbers:
        statement = file.statements[number]
        if isinstance(statement, ast.AnnAssign):
            return ast.unparse(statement.annotation)
        if isinstance(statement, ast.Assign | ast.If | ast.Try):
            bound = [one for one in ast.walk(statement) if isinstance(one, ast.FunctionDef | ast.ClassDef | ast.alias)]
            if not any(getattr(one, "name", "") == name or getattr(one, "asname", "") == name for one in bound):
                return ""
    return None


def starts_empty(file: SourceFile, numbers: Sequence[int], name: str) -> bool:
    """Whether a module's variable is None until some function sets it."""
    for number in numbers:
        value = getattr(file.statements[number], "value", None)
        if not (isinstance(value, ast.Constant) and value.value is None):
            return False
    return bool(numbers)


def convert(value: Any, annotation: str, module: Any) -> Any:
    """A fact as the code would hold it: the member of an enum, else as it is."""
    if isinstance(value, list):
        return tuple(value)
    text = str(value).rpartition(".")[2]
    found = _enum_of(annotation, module)
    if found is not None and isinstance(value, str):
        for member in found:
            if text.lower() in (member.name.lower(), str(member.value).lower()):
                return member
    return value


def _enum_of(annotation: str, module: Any) -> Any:
    for name in _names(annotation):
        found = resolve(name, module)
        if isinstance(found, type) and issubclass(found, enum.Enum):
            return found
    return None


def _names(annotation: Any) -> list[str]:
    if not isinstance(annotation, str):
        return [getattr(annotation, "__name__", "")]
    try:
        tree = ast.parse(annotation.strip("'\""), mode="eval")
    except (SyntaxError, ValueError):
        return []
    return [ast.unparse(one) for one in ast.walk(tree) if isinstance(one, ast.Name | ast.Attribute)]


def resolve(name: str, module: Any) -> Any:
    """What a name in an annotation stands for in a module; None if nothing in the tree."""
    if module is None or module._file is None or "." in name:
        return None
    source = module._file.type_imports.get(name)
    if source is not None:
        where, level, original = source
        target = module._modules.imported(where, level, module._globals)
        return None if isinstance(target, Thing) else _member(target, original)
    return _member(module, name) if name in module._file.defines else None


def _member(module: Any, name: str) -> Any:
    try:
        return getattr(module, name)
    except AttributeError:
        return None


def make(name: str, annotation: Any, module: Any, default: Any = inspect.Parameter.empty) -> Any:
    """An unknown value of an annotated type: an enum's member or a truth is chosen, the rest are stand-ins.

    A declared default is only what is tried first.
    """
    text = annotation if isinstance(annotation, str) else say(annotation) if annotation is not None else ""
    names = _names(text)
    if name.rpartition(".")[2] == run().factor:
        return the_factor(name)
    optional = "Optional" in text or "None" in text
    if optional and run().oracle.truth(f"{name} is None", default=default is None):
        return None
    kinds = [one for one in names if one not in ("Optional", "Union", "None", "typing")]
    if kinds == ["bool"]:
        return run().oracle.truth(name, default=default is not False)
    if len(kinds) == 1 and kinds[0] in _NUMBERS:
        return Thing(name, NUMBER)
    if any(one.rpartition(".")[2] == "Tensor" for one in kinds):
        return _tensor(name)
    return _of_class(name, kinds, module)


def _tensor(name: str) -> Thing:
    from .thing import named_terms

    value = Thing(name, TENSOR)
    value._store.rest = named_terms(name)
    return value


def classify(value: Thing, annotation: str, module: Any) -> None:
    """Note the class of the tree that an annotation names, if it names just one and nothing that holds several."""
    names = [one for one in _names(annotation) if one.rpartition(".")[2] not in ("Optional", "Union", "None", "typing")]
    found = [resolve(one, module) for one in names]
    if len(found) == 1 and isinstance(found[0], type) and not issubclass(found[0], enum.Enum):
        object.__setattr__(value, "_cls", found[0])


def _of_class(name: str, kinds: list[str], module: Any) -> Any:
    from .thing import named_terms

    for kind in kinds if not HOLDERS.intersection(one.rpartition(".")[2] for one in kinds) else ():
        found = resolve(kind, module) if kind not in _OPEN else None
        if isinstance(found, type) and issubclass(found, enum.Enum):
            return member_of(name, found)
        if isinstance(found, type):
            value = plain(name)
            object.__setattr__(value, "_cls", found)
            return value
    value = plain(name)
    value._store.rest = named_terms(name)
    return value


def member_of(name: str, cls: type[enum.Enum]) -> Any:
    """One member of an enum."""
    members = {f"{cls.__name__}.{member.name}": member for member in cls}
    if not members:
        return plain(name)
    fact = run().oracle.fact(name)
    given = _by_text(cls, fact) if fact is not None else _of_platform(cls)
    if isinstance(given, cls):
        return given
    return members[run().oracle.ask(name, list(members))]


def _of_platform(cls: type[enum.Enum]) -> Any:
    """The member that this world's platform is, for an enum of platforms."""
    names = {member.name.lower().replace("rocm", "hip"): member for member in cls}
    if len(names.keys() & set(PLATFORMS)) < 3:
        return None
    return names.get(platform())


def _by_text(cls: type[enum.Enum], fact: Any) -> Any:
    text = str(fact).rpartition(".")[2].lower()
    return next((m for m in cls if text in (m.name.lower(), str(m.value).lower())), None)


def module_of(cls: type) -> Any:
    """The tree's module that defines a class."""
    return run().tree.find(cls.__module__)


def attribute(thing: Thing, attr: str) -> tuple[bool, Any]:
    """`thing.attr` by the class of `thing`: a method bound to it, a property run, a field of its annotated type."""
    cls = thing._cls
    name = f"{say(thing)}.{attr}"
    static = inspect.getattr_static(cls, attr, inspect.Parameter.empty)
    sure = thing._name in run().exact or final(cls)
    if isinstance(static, types.FunctionType) and sure and "__class__" not in static.__code__.co_freevars:
        return True, types.MethodType(static, thing)
    if isinstance(static, classmethod | staticmethod):
        return True, getattr(cls, attr)
    if isinstance(static, property) and static.fget is not None and sure:
        return True, static.fget(thing)
    annotation, home = field_annotation(cls, attr)
    if annotation:
        return True, make(name, annotation, home, static if annotation else None)
    return False, None


def final(cls: type) -> bool:
    """Whether no class of the tree that is loaded derives from it, and it isn't abstract."""
    return not cls.__subclasses__() and not inspect.isabstract(cls) and cls.__name__ not in run().tree.derived()


def field_annotation(cls: type, attr: str) -> tuple[str, Any]:
    """The annotation of an attribute in a class, or of the parameter it is made from, and the module it is read in."""
    for base in cls.__mro__:
        module = module_of(base)
        if module is not None and module._file is not None:
            found = module._file.annotations.get(base.__name__, {}).get(attr)
            if found:
                return found, module
    return "", None


def chosen(modules: Any, owner: Any, name: str, value: Any) -> Any:
    """What is stored as an attribute for which a fact names the class: an object of it, in the place of an unknown one.

    Raises:
        Impossible: the code stores an object of another class, so that this world contradicts the facts.
    """
    fact = run().oracle.fact(f"type({name})") or run().oracle.facts.get(f"type(self.{name})")
    if fact is None and type(value) is Thing and value._kind == ANY and value._cls is None:
        classify(value, *field_annotation(type(owner), name))
    if fact is None or value is None or (isinstance(value, Thing) and value._kind in (NUMBER, FACTOR_KIND)):
        return value
    cls = modules.class_named(str(fact), owner)
    if cls is None:
        raise fail(f"no class {fact} in the tree, which the facts name for {name}")
    if not _meant(type(owner), name, cls):
        return value
    if isinstance(value, Thing):
        return instance(cls, name)
    if type(value).__name__ != cls.__name__:
        raise Impossible(f"{name} is a {type(value).__name__}, and the facts say {fact}")
    return value


def _meant(owner: type, name: str, cls: type) -> bool:
    """Whether a fact about an attribute's class means this owner's: its annotation is the nearest abstract base."""
    annotation, module = field_annotation(owner, name)
    bases = [found for one in _names(annotation) if isinstance(found := resolve(one, module), type)]
    if not bases:
        return not annotation
    for base in bases:
        between = [one for one in cls.__mro__[1:] if issubclass(one, base) and one is not base]
        if issubclass(cls, base) and not any(inspect.isabstract(one) for one in between):
            return True
        if not issubclass(cls, base) and _does_the_same(cls, base):
            return True
    return False


def _does_the_same(cls: type, base: type) -> bool:
    """Whether a class that doesn't derive from another has its methods, with the parameters it names."""
    named = {name: _parameters(one) for name, one in vars(base).items() if isinstance(one, types.FunctionType)}
    same = {name: one for name, one in named.items() if hasattr(cls, name)}
    specific = max((len(one) for one in same.values()), default=0) >= SPECIFIC
    return specific and len(same) > 1 and all(one <= _parameters(getattr(cls, name)) for name, one in same.items())


SPECIFIC = 4
"""Parameters that a method names so that it says for which kind of object it is."""


def _parameters(function: Any) -> set[str]:
    code = getattr(function, "__code__", None)
    return set(code.co_varnames[: code.co_argcount]) if code is not None else set()


def instance(cls: type, name: str) -> Any:
    """An object of a class, built by its own constructor from stand-ins."""
    home = next(one for one in cls.__mro__ if "__init__" in vars(one))
    parameters = list(inspect.signature(vars(home)["__init__"]).parameters.values())[1:]
    arguments = {p.name: argument(p, module_of(home)) for p in parameters if p.kind in KEYWORDS}
    return cls(**arguments)


class Unset:
    """A class attribute that is annotated and given no value until the program runs."""

    def __init__(self, name: str, annotation: str, module: Any) -> None:
        self.made = (name, annotation, module)

    def __get__(self, value: Any, owner: type | None = None) -> Any:
        return make(*self.made)


def fill(cls: type, module: Any) -> None:
    """Give stand-ins to class attributes that only methods set: a state that the whole program shares."""
    if type(cls) is not type or hasattr(cls, "__dataclass_fields__") or hasattr(cls, "_fields"):
        return
    node = module._file.class_node(cls.__name__)
    text = module._file.segment(node) if node is not None else ""
    for name, annotation in vars(cls).get("__annotations__", {}).items():
        if not hasattr(cls, name) and f"cls.{name} =" in text:
            setattr(cls, name, Unset(f"{cls.__name__}.{name}", str(annotation), module))


KEYWORDS = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


def argument(parameter: inspect.Parameter, module: Any) -> Any:
    """A stand-in for a parameter: the factor by its name, else by annotation; a text or number keeps its default."""
    name, default = parameter.name, parameter.default
    if name == run().factor:
        return the_factor(name)
    annotation = "" if parameter.annotation is parameter.empty else str(parameter.annotation)
    fact = run().oracle.fact(f"type({name})")
    if fact is not None and module is not None:
        cls = module._modules.class_named(str(fact), None)
        if cls is not None:
            return instance(cls, name)
    if default is parameter.empty:
        return make(name, annotation, module)
    if isinstance(default, bool):
        return run().oracle.truth(name, default=default)
    if default is None:
        if run().oracle.truth(f"{name} is None", default="Tensor" not in annotation):
            return None
        return make(name, annotation.removeprefix("Optional[").removesuffix("]"), module)
    if isinstance(default, enum.Enum):
        return member_of(name, type(default))
    run().assume(f"{name} has its default, {default!r:.40}")
    return default


__all__ = ["ANY", "FACTOR", "TENSOR", "argument", "attribute", "chosen", "convert", "instance", "make"]
