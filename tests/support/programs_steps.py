"""Steps of a generated program: a few lines on one tensor, and what they do to the power of the factor in it.

A power is a number, or nan once no single number is right. A step that raises says so with `Raised`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

from .programs_conditions import Condition, Place, Test, condition
from .programs_pick import Pick
from .programs_truth import World

Effect = Callable[[World, float], float]


class Raised(Exception):
    """This world ends in an exception."""


@dataclass(frozen=True)
class Factor:
    """An expression for the factor, and the worlds in which it isn't just 1."""

    text: str
    present: Test = field(repr=False, default=lambda world: True)

    def power(self, world: World) -> int:
        return int(self.present(world))


@dataclass(frozen=True)
class Step:
    """Lines, and their effect."""

    lines: tuple[str, ...]
    effect: Effect = field(repr=False)


def nothing(*lines: str) -> Step:
    """Lines without an effect on the power."""
    return Step(lines, lambda world, power: power)


def joined(steps: list[Step]) -> Step:
    """One after the other; nothing at all is `pass`."""

    def effect(world: World, power: float) -> float:
        for step in steps:
            power = step.effect(world, power)
        return power

    lines = tuple(line for step in steps for line in step.lines if line != "pass")
    return Step(lines or ("pass",), effect)


def times(factor: Factor, count: int, *lines: str) -> Step:
    """Lines that apply the factor `count` times, backwards where negative."""
    return Step(lines, lambda world, power: power + count * factor.power(world))


def indented(lines: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(f"    {line}" for line in lines)


ONCE = (
    ("{t} = {t} * {f}",),
    ("{t} = {f} * {t}",),
    ("{t} *= {f}",),
    ("{t}.mul_({f})",),
    ("{t} = {t}.mul({f})",),
    ("{t} = torch.mul({t}, {f})",),
    ("torch.mul({t}, {f}, out={t})",),
    ("{t} = torch.multiply({f}, {t})",),
    ("{t} = {t} / (1 / {f})",),
    ("{t} /= 1.0 / {f}",),
    ("{t} = torch.div({t}, 1 / {f})",),
    ("{t} = torch.add(torch.zeros_like({t}), {t}, alpha={f})",),
    ("{t} = torch.zeros_like({t}).add_({t}, alpha={f})",),
    ("{t}.copy_({t} * {f})",),
    ("alias = {t}", "alias *= {f}"),
    ("flat = {t}.view(-1)", "flat.mul_({f})"),
    ("scale = {f}", "{t} = {t} * scale"),
    ("inverse = 1 / {f}", "{t} = {t} / inverse"),
    ("scaled = {t} * {f}", "{t} = scaled.contiguous()"),
    ("scale_by = lambda value: value * {f}", "{t} = scale_by({t})"),
    ("scale_by = functools.partial(torch.mul, other={f})", "{t} = scale_by({t})"),
    ("{t} = scale_output({t}, {f})",),
    ("{t} = scale_output(factor={f}, x={t})",),
    ("scale_in_place({t}, {f})",),
    ("{t} = make_scaler({f})({t})",),
    ("{t} = scale_if_given({t}, {f})",),
    ('{t} = scale_by_options({t}, **{{"factor": {f}}})',),
    ("{t}, _ = scaled_pair({t}, {f})",),
    ("{t} = scaled_record({t}, factor={f}).value",),
    ("for scale in ({f}, 1.0):", "    {t} = {t} * scale"),
    ('for stage in ("gate", "scale"):', '    if stage == "scale":', "        {t} *= {f}"),
    ("with torch.no_grad():", "    {t} = {t} * {f}"),
    ("with torch.cuda.stream(torch.cuda.current_stream()):", "    {t} *= {f}"),
    ("try:", "    {t} = {t} * {f}", "finally:", "    torch.cuda.synchronize()"),
    ("if (scale := {f}) is not None:", "    {t} *= scale"),
    ("assert {f} is not None", "{t} *= {f}"),
    ("total = torch.zeros_like({t})", "moe_sum_reduce({t}, total, {f})", "{t} = total"),
)
"""Ways to apply the factor once."""

OTHER = (
    (0, ("{t} = {t}.contiguous()",)),
    (0, ("copy = {t}.clone()", "copy *= {f}")),
    (0, ("{t} = {t} * 3.0",)),
    (0, ("{t} = ignore_factor({t}, {f})",)),
    (0, ("{t} = scale_if_given({t})",)),
    (0, ("{t} = {t} * {f} / {f}",)),
    (0, ("inverse = 1.0 / {f}", "{t} *= inverse", "{t} *= {f}")),
    (0, ("scaled = {t}.to(torch.float32)", "scaled.mul_({f})")),
    (-1, ("{t} = {t} / {f}",)),
    (-1, ("{t} *= 1.0 / {f}",)),
    (2, ("for _ in range(2):", "    {t} = {t} * {f}")),
    (2, ("{t} = {t} * {f} * {f}",)),
    (2, ("{t} = scale_output({t} * {f}, {f})",)),
    (math.nan, ("{t} = {t} + {t} * {f}",)),
    (math.nan, ("{t} = torch.add({t}, {t}, alpha={f})",)),
)
"""Lines that look as if they applied the factor once, and how often they do."""


def application(pick: Pick, tensor: str, factor: Factor) -> Step:
    """Lines that apply `factor` to `tensor`, mostly once."""
    if pick.chance(9):
        count, lines = pick.one(OTHER)
        return odd(count, factor, filled(lines, tensor, factor))
    return times(factor, 1, *filled(pick.one(ONCE), tensor, factor))


def odd(count: float, factor: Factor, lines: list[str]) -> Step:
    """Like `times`, for a `count` that may be nan: a sum of differently scaled parts."""
    return Step(tuple(lines), lambda world, power: power + count if factor.power(world) else power)


def filled(lines: tuple[str, ...], tensor: str, factor: Factor) -> list[str]:
    return [line.format(t=tensor, f=factor.text) for line in lines]


def guarded(condition: Condition, yes: Step, no: Step | None = None) -> Step:
    """`if`, with an `else` where there is one."""

    def effect(world: World, power: float) -> float:
        if condition.test(world):
            return yes.effect(world, power)
        return no.effect(world, power) if no else power

    other = ("else:", *indented(no.lines)) if no else ()
    return Step((f"if {condition.text}:", *indented(yes.lines), *other), effect)


def chained(first: Condition, yes: Step, second: Condition, middle: Step, no: Step) -> Step:
    """`if`, `elif` and `else`."""

    def effect(world: World, power: float) -> float:
        step = yes if first.test(world) else middle if second.test(world) else no
        return step.effect(world, power)

    lines = (f"if {first.text}:", *indented(yes.lines), f"elif {second.text}:", *indented(middle.lines))
    return Step((*lines, "else:", *indented(no.lines)), effect)


def refusal(condition: Condition, asserted: bool) -> Step:
    """A world that raises."""

    def effect(world: World, power: float) -> float:
        if condition.test(world):
            raise Raised
        return power

    if asserted:
        return Step((f'assert not {condition.text}, "not implemented"',), effect)
    return Step((f"if {condition.text}:", '    raise NotImplementedError("not supported")'), effect)


CHOICES = (
    ("{t} = {t} * {f} if {c} else {t}",),
    ("{t} = {t} * ({f} if {c} else 1.0)",),
    ("scale = {f} if {c} else 1.0", "{t} *= scale"),
    ("scale = 1.0", "if {c}:", "    scale = {f}", "{t} = {t} * scale"),
    ("if on := {c}:", "    {t} *= {f}"),
    ("{c} and {t}.mul_({f})",),
    ("not {c} or {t}.mul_({f})",),
    ("{t} = scale_if_given({t}, {f} if {c} else None)",),
    ("scale_by = scale_output if {c} else ignore_factor", "{t} = scale_by({t}, {f})"),
    ("enabled = bool({c})", "if enabled:", "    {t}.mul_({f})"),
)
"""Ways to apply the factor once where a condition holds."""


def choice(pick: Pick, tensor: str, factor: Factor, place: Place) -> Step:
    """One of `CHOICES`."""
    test = condition(pick, place)
    lines = [line.format(t=tensor, f=factor.text, c=test.text) for line in pick.one(CHOICES)]
    return Step(tuple(lines), lambda world, power: power + factor.power(world) * test.test(world))


def branch(pick: Pick, tensor: str, factor: Factor, place: Place) -> Step:
    """Statements under a condition."""
    test, yes = condition(pick, place), application(pick, tensor, factor)
    kind = pick.one(("if", "if", "else", "elif", "nested", "refusal"))
    if kind == "else":
        return guarded(test, yes, perhaps(pick, tensor, factor))
    if kind == "elif":
        second, middle = condition(pick, place), application(pick, tensor, factor)
        return chained(test, yes, second, middle, perhaps(pick, tensor, factor))
    if kind == "nested":
        return guarded(test, guarded(condition(pick, place), yes))
    if kind == "refusal":
        return joined([refusal(test, pick.chance(2)), yes])
    return guarded(test, yes)


def perhaps(pick: Pick, tensor: str, factor: Factor) -> Step:
    return application(pick, tensor, factor) if pick.chance(2) else nothing("pass")


def step(pick: Pick, tensor: str, factor: Factor, place: Place) -> Step:
    """Anything that may happen to `tensor` in this place."""
    kind = pick.upto(2)
    if kind == 0:
        return application(pick, tensor, factor)
    return choice(pick, tensor, factor, place) if kind == 1 else branch(pick, tensor, factor, place)
