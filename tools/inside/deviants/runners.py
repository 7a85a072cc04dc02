"""Classes whose methods choose among kernels: does the flag that decides who applies the factor know about each?"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..exactly_once.program import Class, Function
from .conditions import elsewhere
from .methods import RUNS, Branch, Consumers, Term, branches, terms
from .survey import Survey, Suspect

_WEIGHTS = ("topk_weights", "topk_output", "token_final_scales", "router_logits")
"""Names that tell that a branch produces the routed output."""


def look(survey: Survey) -> Iterator[Suspect]:
    """Compare flags with the methods of the classes they name, and the branches of these methods with each other."""
    told = terms(survey)
    consumers = Consumers(survey)
    for term in told:
        survey.note(term.function)
        if not term.rest:
            yield from _backend_forgotten(survey, consumers, term)
    if told:
        for owner in _kin(survey, told):
            yield from _branch_without(survey, consumers, owner, told)


def _backend_forgotten(survey: Survey, consumers: Consumers, term: Term) -> Iterator[Suspect]:
    """The flag is set for a class whatever the backend, and for one backend this class has it applied below."""
    for name in sorted(term.classes):
        owner = survey.class_named(name)
        for function in _running(owner) if owner else ():
            for branch in branches(function):
                used = consumers.of(owner, branch) if branch.backend and owner else None
                if used is None or _guarded(survey, branch) or _external(branch):
                    continue
                yield Suspect(
                    "twice",
                    "backend forgotten",
                    survey.place(term.function, term.node),
                    f"the flag is set for every {name}, so the router applies {survey.factor}; with the "
                    f"{branch.backend} backend {function.qualname} has it applied once more",
                    f"the class is {name} and the backend is {branch.backend}",
                    (survey.place(function, branch.node, "chooses the kernel"), used),
                )


def _kin(survey: Survey, told: list[Term]) -> list[Class]:
    """The classes that share a base with those that flags name, themselves included."""
    named = [owner for t in told for name in sorted(t.classes) if (owner := survey.class_named(name))]
    bases = {base for owner in named for base in owner.base_names}
    return survey.below(bases - {"object", "ABC", "Module"})


def _running(owner: Class) -> list[Function]:
    return [f for n, f in owner.functions.items() if RUNS.match(n)]


def _guarded(survey: Survey, branch: Branch) -> bool:
    """Whether a branch asks the flag itself."""
    nodes = (n for s in branch.statements for n in ast.walk(s))
    return any(survey.is_flag(getattr(n, "attr", "") or getattr(n, "id", "") or "") for n in nodes)


def _external(branch: Branch) -> bool:
    """Whether a branch has the kernel do the routing as well: nothing the router says reaches it."""
    return any("bypassed" in ast.unparse(s) for s in branch.statements if isinstance(s, ast.expr))


def _branch_without(survey: Survey, consumers: Consumers, owner: Class, told: list[Term]) -> Iterator[Suspect]:
    """Most branches of a method use the factor, one that serves a backend doesn't, and nobody else does for it."""
    for function in _running(owner):
        found = [b for b in branches(function) if _runs(b)]
        used = {id(b): consumers.of(owner, b) for b in found}
        with_it = [b for b in found if used[id(b)]]
        without = [b for b in found if not used[id(b)]]
        if len(found) < 2:
            continue
        survey.note(function)
        if len(with_it) < 2 or len(without) != 1 or not without[0].test:
            continue
        if elsewhere(without[0].test) or elsewhere(function.name):
            continue  # there the router may apply it whatever it is told
        if not _elsewhere(survey, owner, without[0], told):
            yield Suspect(
                "never",
                "branch without it",
                survey.place(function, without[0].node),
                f"{function.qualname} uses {survey.factor} in {len(with_it)} branches, not in the one for "
                f"`{without[0].test}`, and the flag for the router isn't set for {owner.name}",
                without[0].test,
                tuple(place for b in with_it[:3] if (place := used[id(b)])),
            )


def _runs(branch: Branch) -> bool:
    text = " ".join(ast.unparse(s) for s in branch.statements)
    return isinstance(branch.answer, ast.Call) and any(word in text for word in (*_WEIGHTS, "dispatch_output"))


def _elsewhere(survey: Survey, owner: Class, branch: Branch, told: list[Term]) -> bool:
    """Whether the flag may be set for this class with this backend."""
    names = survey.names_above(owner)
    return any(t.classes & names and (not t.rest or any(b in branch.test for b in t.backends())) for t in told)
