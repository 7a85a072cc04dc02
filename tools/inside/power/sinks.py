"""What is known of calls that leave Python: the data of `sinks.toml`, and what a call does by it."""

from __future__ import annotations

import os
import tomllib
from dataclasses import dataclass, field
from typing import Any

from .arith import is_factor
from .context import run
from .terms import ONE, ROUTED, SHARED, Terms, unknown
from .thing import Thing, fresh, plain, terms_of
from .writing import write

FILE = os.path.join(os.path.dirname(os.path.dirname(__file__)), "sinks.toml")


@dataclass(frozen=True)
class Sink:
    """One callable of `sinks.toml`; see there for what each key means."""

    name: str
    source: str = ""
    modules: tuple[str, ...] = ()
    params: tuple[str, ...] = ()
    factor: str = ""
    effect: str = "ignores"
    when: str = ""
    default: Any = None
    linear_in: tuple[str, ...] = ()
    renormalises: Any = ""
    returns: Any = "other"
    writes: tuple[str, ...] = ()
    note: str = ""

    def fits(self, path: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        """Whether a call could be one of this version of the callable."""
        if self.modules and not any(path.startswith(f"{root}.") for root in self.modules):
            return False
        return not self.params or (len(args) <= len(self.params) and set(kwargs) <= set(self.params))

    def call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """What the call gives back; memory it writes is written."""
        bound = {**dict(zip(self.params, args, strict=False)), **kwargs}
        terms = self._terms(bound)
        for name in self.writes:
            if isinstance(bound.get(name), Thing):
                write(bound[name], terms)
        if isinstance(self.returns, str):
            return self._given(self.returns, terms)
        return tuple(self._given(one, terms, n) for n, one in enumerate(self.returns))

    def _terms(self, bound: dict[str, Any]) -> Terms:
        stray = [name for name, value in bound.items() if is_factor(value) and name != self.factor]
        if stray:
            return unknown(f"{self.name} takes the factor as {stray[0]}; what it does with that isn't known")
        terms = ONE
        for name in self.linear_in:
            terms = terms * terms_of(bound.get(name))
        if self.renormalises and _true(bound, self.renormalises):
            if terms.carries:
                run().site("renormalised")
            terms = terms.plain()
        return self._applied(terms, bound)

    def _applied(self, terms: Terms, bound: dict[str, Any]) -> Terms:
        """The terms after `factor`, which may be the factor or the routed weights, has done what `effect` says."""
        value = bound.get(self.factor, self.default) if self.factor else None
        if not isinstance(value, Thing) or self.effect == "ignores":
            return terms
        if self.effect == "reciprocal_on_shared":
            run().site("reciprocal")
            return terms + terms_of(value).inverse().tagged(SHARED)
        if self.effect == "depends" and self.when == "?":
            if not terms_of(value).matters:
                return terms
            return unknown(f"{self.name}: {self.note or 'whether it applies the factor depends on what is not passed'}")
        if self.effect == "depends" and not _true(bound, self.when):
            return terms
        if is_factor(value):
            run().site("kernel")
        return terms * terms_of(value)

    def _given(self, kind: str, terms: Terms, number: int = 0) -> Thing:
        name = f"{self.name}(…).{kind if kind == 'ids' else number}@{run().oracle.where()[1]}"
        if kind == ROUTED:
            return fresh(name, terms.tagged(ROUTED))
        return fresh(name, ONE.tagged(SHARED)) if kind == SHARED else plain(name, "tensor" if kind == "ids" else "?")


def _true(bound: dict[str, Any], when: Any) -> bool:
    if when is True:
        return True
    name = str(when)
    value = bound.get(name.removeprefix("not ").strip())
    return not value if name.startswith("not ") else bool(value)


@dataclass
class Sinks:
    """All of them by name."""

    by_name: dict[str, list[Sink]] = field(default_factory=dict)

    @classmethod
    def load(cls, more: list[dict[str, Any]]) -> Sinks:
        """Those of `sinks.toml`, after those that the request brings."""
        rows = list(more)
        if os.path.exists(FILE):
            with open(FILE, "rb") as stream:
                rows += tomllib.load(stream).get("sink", [])
        found = cls()
        for row in rows:
            known = {key: _frozen(value) for key, value in row.items() if key in Sink.__dataclass_fields__}
            found.by_name.setdefault(row["name"], []).append(Sink(**known))
        return found

    def find(self, path: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Sink | None:
        """The entry for a called dotted name, if there is one that fits."""
        last = path.removesuffix(".default").rpartition(".")[2]
        fitting = [sink for sink in self.by_name.get(last, ()) if sink.fits(path, args, kwargs)]
        return next((sink for sink in fitting if sink.modules), fitting[0] if fitting else None)

    def replaces(self, path: str) -> bool:
        """Whether a function of the tree is known by its module, so that its entry stands for it."""
        last = path.rpartition(".")[2]
        return any(path.startswith(f"{root}.") for sink in self.by_name.get(last, ()) for root in sink.modules)


def _frozen(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value
