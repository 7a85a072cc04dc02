"""Environment variables: those that no fact gives may be set or not, to a text that what it is compared with tells."""

from __future__ import annotations

from typing import Any

from .arith import Comparison, bounds_of
from .context import run
from .thing import ANY, NUMBER, Thing, plain

FOLDS = ("lower", "upper", "casefold", "strip")
OTHERS = "env.*"
"""A fact of this name, which is null, says that all other variables are unset."""


class Variable(Thing):
    """The text of a variable that is set, or what `lower()` and its kind make of it."""

    __slots__ = ("_root",)

    def __init__(self, name: str, root: Variable | None = None) -> None:
        Thing.__init__(self, name, ANY)
        object.__setattr__(self, "_root", root or self)

    def known(self) -> str | None:
        """The text, if this world says which."""
        bounds = run().bounds.get(self._name)
        return str(bounds.equal[0]) if bounds is not None and bounds.equal else None

    def meant(self, text: str) -> Variable:
        """What to compare with a text: that of the variable itself, where no letters are to fold."""
        plain_ = text == text.lower() == text.upper() == text.strip()
        return self._root if plain_ and text else self

    def among(self, texts: list[Any]) -> bool:
        """Whether it is one of these: one question, not one for each."""
        if self.known() is not None:
            return self.known() in texts
        if not all(isinstance(one, str) for one in texts):
            return any(bool(self == one) for one in texts)
        left = [one for one in texts if bounds_of(self.meant(one)).known("==", one) is not False]
        if len(left) < 2:
            return any(bool(self == one) for one in left)
        yes = run().oracle.truth(f"{self._name} in {tuple(texts)!r}", default=False)
        self._learn(left, yes)
        return yes

    def _learn(self, texts: list[str], yes: bool) -> None:
        if yes:
            bounds_of(self).among = list(texts)
            return
        for one in texts:
            bounds_of(self).learn("==", one, False)
            bounds_of(self.meant(one)).learn("==", one, False)

    def __eq__(self, other: object) -> Any:
        if self.known() is not None or not isinstance(other, str):
            return self.known() == other if not isinstance(other, Thing) else Thing.__eq__(self, other)
        return Comparison(self.meant(other), "==", other)

    def __ne__(self, other: object) -> Any:
        return not self == other

    def __hash__(self) -> int:
        return hash(self._name)

    def __bool__(self) -> bool:
        return bool(self != "")

    def number(self, made: type) -> Any:
        """`int(text)`, `float(text)`."""
        text = self.known()
        return made(text) if text is not None else plain(f"{made.__name__}({self._name})", NUMBER)

    def __getattr__(self, attr: str) -> Any:
        if attr.startswith("__"):
            raise AttributeError(attr)
        text = self.known()
        if text is not None:
            return getattr(text, attr)
        if attr in FOLDS:
            return lambda *args: Variable(f"{self._name}.{attr}()", self._root) if not args else plain(f"{attr}(…)")
        return Thing.__getattr__(self, attr)


class Environment(dict[str, Any]):
    """`os.environ`: what the facts give as `env.NAME`; whether another is set is asked."""

    def __init__(self) -> None:
        given = {k.removeprefix("env."): v for k, v in run().oracle.facts.items() if k.startswith("env.")}
        super().__init__({key: str(value) for key, value in given.items() if value is not None})
        self.unset = {key for key, value in given.items() if value is None}

    def __contains__(self, key: object) -> bool:
        if dict.__contains__(self, key) or key in self.unset:
            return key not in self.unset
        if isinstance(key, Thing):
            return run().oracle.truth(f"{key._name} in os.environ", default=False)
        if "*" in self.unset:
            run().assume("environment variables that the facts don't give are unset")
            return False
        if not run().oracle.truth(f"{key!r} in os.environ", default=False):
            self.unset.add(str(key))
            return False
        self[str(key)] = Variable(f"os.environ[{key!r}]")
        return True

    def __getitem__(self, key: Any) -> Any:
        if key not in self:
            raise KeyError(key)
        return plain(f"os.environ[{key._name}]") if isinstance(key, Thing) else dict.__getitem__(self, key)

    def __setitem__(self, key: Any, value: Any) -> None:
        self.unset.discard(key)
        dict.__setitem__(self, key, value)

    def __delitem__(self, key: Any) -> None:
        dict.pop(self, key, None)
        self.unset.add(key)

    def get(self, key: Any, default: Any = None) -> Any:
        """A variable's value."""
        if key in self:
            return self[key]
        return default

    def pop(self, key: Any, *default: Any) -> Any:
        """A variable's value, which isn't set from then on."""
        value = self.get(key, *default) if default else self[key]
        self.__delitem__(key)
        return value

    def setdefault(self, key: Any, default: Any = None) -> Any:
        """A variable's value, which is set from then on."""
        if key not in self:
            self[key] = default
        return self[key]
