"""Facts: what is known of the deployment, and which guards it decides."""

from __future__ import annotations

import ast
import re
from functools import cached_property

from .core import Core

_TRUE = {"true", "1", "yes", "on"}
_FALSE = {"false", "0", "no", "off"}
_NONE = {"none", "null"}
_FIELD = re.compile(r"(?:.*\.)?([A-Z][A-Z0-9_]{2,})\.(?:get|value|get_value)(?:\(\))?")
_READ = re.compile(r"(?P<by>[\w.]*(?:environ|getenv|env)\w*(?:\.get)?)[(\[]['\"](?P<name>[A-Z][A-Z0-9_]+)['\"].*[)\]]")
_CASED = re.compile(r"\.(?:lower|upper|strip|casefold)\(\)$")
_NAMED = re.compile(r"[A-Za-z_][\w.]*(\(\))?")
_HOLDER = re.compile(r"(config|cfg|conf|args|params|flags|settings|options|envs?)$", re.IGNORECASE)
_GLOBAL = re.compile(r"_?[A-Z][A-Z0-9_]*\b")
_EQUAL = re.compile(r"(.+) == ('.*'|\".*\"|-?[\d.]+|True|False|b'.*')")
_ORDERED = re.compile(r"(.+) (<=|>=|<|>|==) (.+)")


class Facts(Core):
    """Looks up what is known of a guard."""

    @cached_property
    def folded(self) -> dict[str, str]:
        """The facts' own names by their names in lower case."""
        return {name.casefold(): name for name in self.facts}

    def known(self, text: str, number: bool = False) -> tuple[str, str] | None:
        """The fact that tells what an expression comes to: its name and value.

        It may name the expression by its last identifier. For a number that must be one that a configuration or a
        global holds: `layer.num_experts` is a share of `config.num_experts` as often as not.
        """
        for name in dict.fromkeys((text, *spoken_names(text), *joined_names(text), *self.nicknames.get(text, ()))):
            fact = self.folded.get(name.casefold())
            if fact is not None and (not number or name == text or _is_held(text)):
                return fact, self.facts[fact]
        return self.environment(text)

    def environment(self, text: str) -> tuple[str, str] | None:
        """What is known of an environment variable that an expression reads."""
        read = _READ.fullmatch(_CASED.sub("", text)) or _FIELD.fullmatch(text)
        if read is None:
            return None
        name = read["name"] if "name" in read.re.groupindex else read[1]
        fact = self.folded.get(f"env.{name}".casefold()) or self.folded.get(name.casefold())
        return (fact, self.facts[fact]) if fact is not None else None

    def fact(self, key: str, name: str, values: tuple[str, ...]) -> str | None:
        """The value that a fact gives a guard; a fact may name the guard by its last identifier, in any case."""
        for spoken in dict.fromkeys((key, name, *spoken_names(key), *joined_names(key), *self.nicknames.get(key, ()))):
            fact = self.folded.get(spoken.casefold())
            if fact is not None:
                wanted = self.facts[fact].casefold()
                for value in values:
                    if wanted in (value.casefold(), value.casefold().replace("_", "-")):
                        return self.used(fact, value)
        if values == ("true", "false"):
            return self._decided(key)
        return self._side(name, values) if values[0][:2] in ("< ", "= ") else None

    def used(self, fact: str, value: str) -> str:
        """A value that a fact decided."""
        self.used_facts.add(fact)
        return value

    def _decided(self, key: str) -> str | None:
        """What facts say of a condition: that something is None, equals a constant, compares with a number, is true."""
        if key.endswith(" is None"):
            return self._none(key.removesuffix(" is None"))
        match = _EQUAL.fullmatch(key)
        if match is not None:
            return self._equal(match[1], match[2])
        match = _ORDERED.fullmatch(key)
        if match is not None:
            return self._ordered_facts(match[1], match[2], match[3])
        return self._true(key)

    def _none(self, text: str) -> str | None:
        found = self.known(text)
        return None if found is None else self.used(found[0], _word(found[1].casefold() in _NONE))

    def _equal(self, text: str, literal: str) -> str | None:
        try:
            constant = ast.literal_eval(literal)
        except (SyntaxError, ValueError):
            return None
        found = self.known(text, isinstance(constant, int | float) and not isinstance(constant, bool))
        if found is None:
            return None
        holds = _equals(found[1], constant, exactly=found[0].casefold().startswith("env."))
        return None if holds is None else self.used(found[0], _word(holds))

    def _number(self, text: str) -> tuple[str, float] | None:
        """A number by a fact; a literal number goes by no fact."""
        try:
            return "", float(text)
        except ValueError:
            pass
        found = self.known(text, number=True)
        try:
            return None if found is None else (found[0], float(found[1]))
        except ValueError:
            return None

    def _ordered_facts(self, left: str, sign: str, right: str) -> str | None:
        a, b = self._number(left), self._number(right)
        if a is None or b is None:
            return None
        self.used_facts |= {name for name, _ in (a, b) if name}
        order = "<" if a[1] < b[1] else ">" if a[1] > b[1] else "="
        return _word(order in sign)

    def _side(self, text: str, labels: tuple[str, ...]) -> str | None:
        """Which side of a constant a known number is on."""
        try:
            constant = float(labels[0][2:])
        except ValueError:
            return None
        found = self._number(text)
        if found is None or not found[0]:
            return None
        order = "<" if found[1] < constant else ">" if found[1] > constant else "="
        side = next((label for label in labels if label[0] == order), None)
        return None if side is None else self.used(found[0], side)

    def _true(self, text: str) -> str | None:
        """Whether something counts as true. `none` may be the name of a choice, which would."""
        read = _READ.fullmatch(text)
        found = self.known(text) if read is not None or _NAMED.fullmatch(text) else None
        if found is None or found[1] in ("none", "null"):
            return None
        fact, value = found
        if read is not None and re.search(r"environ|getenv", read["by"]):
            # The text itself counts: "0" is true.
            return None if value.casefold() in _FALSE and not fact.startswith("env.") else self.used(fact, _word(value))
        if value.casefold() in _TRUE | _FALSE | {"", "None"}:
            return self.used(fact, _word(value.casefold() in _TRUE))
        try:
            return self.used(fact, _word(float(value)))
        except ValueError:
            return self.used(fact, _word(value not in ("None", "")))


def _word(value: object) -> str:
    return "true" if value else "false"


def _equals(given: str, constant: object, *, exactly: bool) -> bool | None:
    """Whether a fact's value is a constant of the source; None where that can be read both ways."""
    if constant is None:
        return given.casefold() in _NONE
    if isinstance(constant, bool):
        return given.casefold() in (_TRUE if constant else _FALSE)
    if isinstance(constant, int | float):
        try:
            return float(given) == constant
        except ValueError:
            return False if given.casefold() not in _TRUE | _FALSE else None
    if not isinstance(constant, str):
        return None
    if given.casefold() in _TRUE | _FALSE and constant.casefold() in _TRUE | _FALSE and not exactly:
        return (given.casefold() in _TRUE) == (constant.casefold() in _TRUE)
    return given == constant if exactly else given.casefold() == constant.casefold()


def _is_held(text: str) -> bool:
    """Whether a configuration or a global holds a value, or nothing is seen to hold it."""
    holder = text.rpartition(".")[0]
    return not holder or bool(_HOLDER.search(holder.rpartition(".")[2]) or _GLOBAL.match(text))


def joined_names(key: str) -> list[str]:
    """`state.moe.runner_backend` is what a flag calls `moe_runner_backend`, and people `moe.runner_backend`."""
    parts = key.split(".")[-2:]
    return ["_".join(parts), ".".join(parts)] if len(parts) == 2 and all(p.isidentifier() for p in parts) else []


def spoken_names(key: str) -> list[str]:
    """Shorter names by which people know a guard: `type(self.experts.quant_method)` is `quant_method`."""
    plain = key.partition(" <= ")[0]
    inner = plain.removeprefix("type(").removesuffix(")") if plain.startswith("type(") else key
    last = re.sub(r"\(\)$", "", inner).rsplit(".", 1)[-1]
    return (
        [inner, last, last.lower(), last.lower().removeprefix("get_"), last.lstrip("_")] if last.isidentifier() else []
    )
