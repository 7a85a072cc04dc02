"""What calls that leave Python do with the factor: data, kept in `sinks.toml` and extended by users."""

from __future__ import annotations

import os
import re
import tomllib
from dataclasses import dataclass, field
from typing import Any

from ..fail import InsideError

OWN = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "sinks.toml")
EFFECTS = ("applies", "ignores", "reciprocal_on_shared", "depends")
LAUNCH = {"num_warps", "num_stages", "num_ctas", "launch_cooperative_grid", "launch_pdl", "enable_pdl", "maxnreg"}
"""Options that a GPU kernel's launch takes beside its parameters."""
_KEYS = {
    "name", "modules", "params", "factor", "effect", "when", "default", "linear_in", "renormalises", "returns",
    "writes", "source", "note",
}  # fmt: skip


@dataclass(frozen=True)
class Sink:
    """One callable that leaves Python; the fields are those of `sinks.toml`."""

    name: str
    params: tuple[str, ...]
    modules: tuple[str, ...] = ()
    factor: str = ""
    effect: str = "ignores"
    when: str = ""
    linear_in: tuple[str, ...] = ()
    renormalises: str = ""
    returns: str | tuple[str, ...] = "other"
    writes: tuple[str, ...] = ()
    source: str = ""
    note: str = ""


@dataclass
class Sinks:
    """All sinks by name; those read last come first."""

    by_name: dict[str, list[Sink]] = field(default_factory=dict)

    def add(self, text: str, where: str) -> None:
        """Read a file's text.

        Raises:
            InsideError: it isn't TOML, or an entry has a key, effect or parameter that can't be.
        """
        try:
            entries = tomllib.loads(text).get("sink", [])
        except tomllib.TOMLDecodeError as error:
            raise InsideError(f"{where}: not TOML: {error}") from None
        fresh = [_sink(entry, f"{where}: sink {number}") for number, entry in enumerate(entries, 1)]
        for sink in reversed(fresh):
            self.by_name.setdefault(sink.name, []).insert(0, sink)

    def find(self, dotted: str, positional: int, named: set[str], harmless: set[str]) -> Sink | None:
        """The sink that a call of this dotted name with these arguments means.

        One that comes from the called module wins over one from anywhere; of several that the arguments fit, the
        one that leaves the fewest parameters out. `harmless` are named arguments that carry nothing: only where no
        entry knows them all, one that doesn't will do.
        """
        base, _, name = dotted.rpartition(".")
        entries = [s for s in self.by_name.get(name, []) if positional <= len(s.params)]
        entries = [s for s in entries if any(_leads(base, m) for m in s.modules)] or [
            s for s in entries if not s.modules
        ]
        for given in (named - LAUNCH, named - LAUNCH - harmless):
            fitting = [s for s in entries if given <= set(s.params[positional:])]
            if fitting:
                return min(fitting, key=lambda s: len(s.params) - positional - len(given))
        return None

    def of_kernel(self, name: str, params: tuple[str, ...]) -> Sink | None:
        """The sink of a kernel of the tree, told by its parameters."""
        return next((s for s in self.by_name.get(name, []) if s.params == params), None)


def _leads(base: str, module: str) -> bool:
    """Whether a dotted name starts with a module's, or a receiver's text (a call's without arguments) ends with it."""
    plain = re.sub(r"\(.*\)", "", base)
    return plain == module or plain.startswith(module + ".") or ("." not in module and plain.lower().endswith(module))


def load(extra: str = "", where: str = "sinks") -> Sinks:
    """Sleuth's own sinks and a user's, which win."""
    sinks = Sinks()
    with open(OWN, encoding="utf-8") as stream:
        sinks.add(stream.read(), "sinks.toml")
    if extra:
        sinks.add(extra, where)
    return sinks


def _sink(entry: dict[str, Any], where: str) -> Sink:
    unknown = set(entry) - _KEYS
    if unknown or not isinstance(entry.get("name"), str) or "params" not in entry:
        raise InsideError(f"{where}: it needs `name` and `params`, and no {sorted(unknown) or 'others'}")
    effect = entry.get("effect", "ignores")
    if effect not in EFFECTS:
        raise InsideError(f"{where} ({entry['name']}): effect {effect!r} isn't one of {', '.join(EFFECTS)}")
    params = tuple(entry["params"])
    factor, when = entry.get("factor", ""), str(entry.get("when", ""))
    used = [factor, *entry.get("linear_in", []), *entry.get("writes", [])]
    used += [when.removeprefix("not ").strip()] if when != "?" else []
    for name in filter(None, used):
        if name not in params:
            raise InsideError(f"{where} ({entry['name']}): {name!r} isn't one of its params")
    returns = entry.get("returns", "other")
    renormalises = entry.get("renormalises", "")
    return Sink(
        entry["name"],
        params,
        modules=tuple(entry.get("modules", ())),
        factor=factor,
        effect=effect,
        when=when,
        linear_in=tuple(entry.get("linear_in", ())),
        renormalises="true" if renormalises is True else str(renormalises or ""),
        returns=returns if isinstance(returns, str) else tuple(returns),
        writes=tuple(entry.get("writes", ())),
        source=str(entry.get("source", "")),
        note=str(entry.get("note", "")),
    )
