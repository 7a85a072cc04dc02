"""Answers to what can't be known: one answer a name in each run, given by facts, by the run's plan or by default."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

MOST_CHOICES = 4_000
"""Different questions in one run."""


class StandInError(BaseException):
    """The stand-ins can't go on; the world's count is then unknown. No `except Exception` of the tree catches it."""


class Impossible(BaseException):
    """The answers given contradict the facts: there is no such world."""


@dataclass
class Choice:
    """A question met in a run.

    Attributes:
        name: the condition, as the code would spell it.
        options: the answers there are, as text; the first is the default.
        answer: index of the answer given.
        fixed: whether a fact gave it.
    """

    name: str
    options: list[str]
    answer: int
    path: str
    line: int
    fixed: bool = False


@dataclass
class Oracle:
    """Answers by name, and the log of what was asked.

    Attributes:
        facts: what is known; a key may leave out leading components of a dotted name.
        plan: answers that this run is to give, as text.
    """

    facts: dict[str, object]
    plan: dict[str, str]
    where: Callable[[], tuple[str, int]]
    tell: Callable[[Choice], None] = lambda choice: None
    log: list[Choice] = field(default_factory=list)
    known: dict[str, Choice] = field(default_factory=dict)

    def ask(self, name: str, options: Sequence[str]) -> str:
        """One of `options`, always the same for one name."""
        name = spelled(name)
        if name in self.known:
            choice = self.known[name]
            if choice.options[choice.answer] in options:
                return choice.options[choice.answer]
            raise StandInError(f"{name} is asked in two ways: {choice.options} and {list(options)}")
        if len(self.log) >= MOST_CHOICES:
            raise StandInError(f"more than {MOST_CHOICES:,} questions in one run")
        fact = self.fact(name)
        path, line = self.where()
        if fact is not None and str_of(fact) in options:
            choice = Choice(name, list(options), list(options).index(str_of(fact)), path, line, fixed=True)
        else:
            planned = self.plan.get(name)
            choice = Choice(name, list(options), options.index(planned) if planned in options else 0, path, line)
        self.known[name] = choice
        self.log.append(choice)
        self.tell(choice)
        return choice.options[choice.answer]

    def truth(self, name: str, default: bool = True) -> bool:
        """A yes or no."""
        options = ("true", "false") if default else ("false", "true")
        return self.ask(name, options) == "true"

    def fact(self, name: str) -> object | None:
        """What the facts say about a name; the longest key that ends it wins."""
        name = spelled(name)
        if name in self.facts:
            return self.facts[name]
        fits = [key for key in self.facts if name.endswith("." + key)]
        return self.facts[max(fits, key=len)] if fits else None


def str_of(value: object) -> str:
    """A fact's value as an option spells it."""
    return str(value).lower() if isinstance(value, bool) or value is None else str(value)


def spelled(name: str) -> str:
    """A condition with its white space made even."""
    return re.sub(r"\s+", " ", name.strip())
