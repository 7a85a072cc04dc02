"""Conditions for generated programs: source text, and what it comes to in a world."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from .programs_pick import Pick
from .programs_truth import World

Test = Callable[[World], bool]

METHODS = ("Fp8MoEMethod", "Fp4MoEMethod", "UnquantizedMoEMethod")
WRAPPER = "OffloadMoEMethod"
RUNNERS = ("triton", "cutlass", "marlin")

GUARDS: dict[str, tuple[object, ...]] = {
    "platform": ("cuda", "hip", "another"),
    "env": (False, True),
    "arg": (False, True),
    "renorm": (False, True),
    "hash": (False, True),
    "shared": (None, 1),
    "tokens": ("few", "many"),
    "runner": RUNNERS,
    "quant": METHODS,
}
"""What a program may branch on, and the values of each."""


@dataclass(frozen=True)
class Condition:
    """A Python expression that never needs brackets around it, and its value."""

    text: str
    test: Test = field(repr=False)

    def __invert__(self) -> Condition:
        return Condition(f"(not {self.text})", lambda world: not self.test(world))


@dataclass(frozen=True)
class Place:
    """Where a condition stands: what it can see from there, and which guards the program has."""

    kind: str
    """`init` or `model` (methods of the model), `router`, `experts` (their `__init__`), `method` (of a quant method),
    `function` (a helper that is given the experts), or `plain` (anywhere)."""
    guards: frozenset[str]
    wrapped: Test = field(repr=False, default=lambda world: False)
    """Whether the wrapper hides the class of the quant method."""
    fused: Test = field(repr=False, default=lambda world: False)
    """What the experts' flag `should_fuse_scaling_factor` comes to."""

    def named(self, kind: str) -> Place:
        """The same program, seen from another place."""
        return Place(kind, self.guards, self.wrapped, self.fused)


def flag(text: str, key: str) -> Condition:
    return Condition(text, lambda world: bool(world.get(key)))


def same(text: str, key: str, *values: str) -> Condition:
    return Condition(text, lambda world: world.get(key) in values)


def platform_atoms(place: Place) -> list[Condition]:
    found = []
    if "platform" in place.guards:
        found += [same(text, "platform", "cuda") for text in ("_is_cuda", "is_cuda()")]
        found += [same(text, "platform", "hip") for text in ("_is_hip", "is_hip()")]
    if "env" in place.guards:
        found += [flag("_use_fast", "env"), flag('get_bool_env_var("ENGINE_FAST")', "env")]
        found += [flag('(os.environ.get("ENGINE_FAST", "0") == "1")', "env")]
    if "arg" in place.guards:
        found += [flag("get_server_args().enable_overlap", "arg")]
    return found


def runner_atoms(place: Place) -> list[Condition]:
    if "runner" not in place.guards:
        return []
    two = "(get_runner_backend() in (RunnerBackend.TRITON, RunnerBackend.MARLIN))"
    return [
        *(same(f"get_runner_backend().is_{name}()", "runner", name) for name in RUNNERS),
        same("(get_runner_backend() == RunnerBackend.CUTLASS)", "runner", "cutlass"),
        same("(get_runner_backend() is RunnerBackend.TRITON)", "runner", "triton"),
        same(two, "runner", "triton", "marlin"),
    ]


def config_atoms(place: Place) -> list[Condition]:
    found = []
    if place.kind in ("init", "model", "router") and "renorm" in place.guards:
        found += [flag("config.norm_topk_prob" if place.kind == "init" else "self.renormalize", "renorm")]
    if place.kind == "model" and "hash" in place.guards:
        found += [flag("isinstance(self.topk, HashTopK)", "hash"), flag("self.is_hash", "hash")]
    if place.kind == "model" and "tokens" in place.guards:
        found += [same("(hidden_states.shape[0] > 256)", "tokens", "many")]
        found += [same("(hidden_states.shape[0] <= SMALL_BATCH)", "tokens", "few")]
    return found


def method_atoms(place: Place) -> list[Condition]:
    """Tests on the class of the quant method, which a wrapper changes."""
    holder = {"model": "self.experts.", "experts": "self.", "function": "experts."}.get(place.kind)
    if holder is None or "quant" not in place.guards:
        return []
    one = [is_method(f"isinstance({holder}quant_method, {name})", place, name) for name in METHODS]
    pair = is_method(f"isinstance({holder}quant_method, ({METHODS[0]}, {METHODS[1]}))", place, *METHODS[:2])
    exact = is_method(f"(type({holder}quant_method) is {METHODS[2]})", place, METHODS[2])
    return [*one, pair, exact]


def is_method(text: str, place: Place, *names: str) -> Condition:
    return Condition(text, lambda world: not place.wrapped(world) and world.get("quant", METHODS[0]) in names)


def flag_atoms(place: Place) -> list[Condition]:
    """The flag that the experts compute and the model and router read."""
    text = {"model": "self.experts.should_fuse_scaling_factor", "function": "experts.should_fuse_scaling_factor"}
    text |= {"router": "self.apply_routed_scaling_factor_on_output", "method": "layer.should_fuse_scaling_factor"}
    return [Condition(text[place.kind], place.fused)] if place.kind in text else []


def atoms(place: Place, flags: bool = True) -> list[Condition]:
    """Every single condition that makes sense there."""
    plain = platform_atoms(place) + runner_atoms(place) + config_atoms(place) + method_atoms(place)
    return plain + (flag_atoms(place) if flags else [])


def both(left: Condition, right: Condition) -> Condition:
    return Condition(f"({left.text} and {right.text})", lambda w: left.test(w) and right.test(w))


def either(left: Condition, right: Condition) -> Condition:
    return Condition(f"({left.text} or {right.text})", lambda w: left.test(w) or right.test(w))


def chosen(test: Condition, yes: Condition, no: Condition) -> Condition:
    text = f"({yes.text} if {test.text} else {no.text})"
    return Condition(text, lambda w: yes.test(w) if test.test(w) else no.test(w))


def condition(pick: Pick, place: Place, flags: bool = True) -> Condition:
    """A condition that holds in some worlds: an atom, or a few joined; `True` where nothing can be asked."""
    known = atoms(place, flags)
    return grown(pick, known, 2) if known else Condition("True", lambda world: True)


def grown(pick: Pick, known: list[Condition], deep: int) -> Condition:
    """A condition with at most so many joints above one another."""
    kind = pick.one(("atom", "atom", "atom", "not", "and", "or", "if")) if deep else "atom"
    if kind == "atom":
        return pick.one(known)
    first = grown(pick, known, deep - 1)
    if kind == "not":
        return ~first
    second = grown(pick, known, deep - 1)
    if kind == "if":
        return chosen(pick.one(known), first, second)
    return both(first, second) if kind == "and" else either(first, second)
