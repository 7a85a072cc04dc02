"""The experts of a generated program: quant methods, the runners they choose from, a wrapper, the flag they compute."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from .programs_conditions import METHODS, RUNNERS, WRAPPER, Condition, Place, condition
from .programs_library import Unit, unit
from .programs_pick import Pick
from .programs_router import NAME, NEVER, OUTPUTS, Layer, Passed, call, passed
from .programs_steps import Effect, Factor, Step, indented, joined, step
from .programs_truth import World

LINEAR = (
    "out = hidden_states * topk_weights",
    "out = torch.mul(hidden_states, topk_weights)",
    "out = topk_weights * hidden_states.contiguous()",
    "out = grouped_gemm(hidden_states, topk_weights)",
)
"""Ways to weigh the output of the experts; the last calls a kernel that isn't in the tree."""

BASE = """
class FusedMoEMethodBase(ABC):
    @abstractmethod
    def apply(self, layer, hidden_states, topk_output):
        raise NotImplementedError
"""
QUANTIZATION = """
class QuantizationConfig(ABC):
    @abstractmethod
    def get_quant_method(self, layer) -> FusedMoEMethodBase:
        raise NotImplementedError
"""
CONFIG = """
class {kind}Config(QuantizationConfig):
    def get_quant_method(self, layer) -> FusedMoEMethodBase:
        return {kind}MoEMethod()
"""
DATA = f"""
@dataclass
class MoeRunnerConfig:
    top_k: int
    {NAME}: float = 1.0
"""
OFFLOAD = f"""
class {WRAPPER}(FusedMoEMethodBase):
    def __init__(self, inner):
        self.inner = inner

    def apply(self, layer, hidden_states, topk_output):
        return self.inner.apply(layer, hidden_states, topk_output)
"""
EXPERTS = """
class FusedMoE(nn.Module):
    def __init__(self, config, quant_config: QuantizationConfig, {factor}={default}):
        super().__init__()
{init}

    def forward(self, hidden_states, topk_output):
        return self.quant_method.apply(self, hidden_states, topk_output)
"""


@dataclass(frozen=True)
class Decided:
    """What is settled before any body is written: when the wrapper is used, what the flag comes to, what is folded."""

    wrap: Condition
    fuse: Condition = field(default=NEVER)
    fold: Condition = field(default=NEVER)
    """When the factor is folded into the weights of the experts."""


def decisions(pick: Pick, guards: frozenset[str]) -> Decided:
    """Whether there is a wrapper, and when; what the flag is computed from; whether weights are scaled."""
    wrap = condition(pick, Place("plain", guards), flags=False) if pick.chance(3) else NEVER
    place = Place("experts", guards, wrapped=wrap.test)
    fuse, fold = (condition(pick, place, flags=False) if pick.chance(among) else NEVER for among in (2, 6))
    return Decided(wrap, fuse, fold)


def multiplied(pick: Pick, given: Passed, holder: str) -> Step:
    """The line that makes the routed output; now and then a kernel does it that takes the factor too."""
    if not pick.chance(20):
        return Step((pick.one(LINEAR),), lambda world, power: power)
    factor = given.text.format(holder) + (" or 1.0" if given.optional else "")
    line = f"out = scaled_moe(hidden_states, topk_weights, {NAME}={factor})"
    return Step((line,), lambda world, power: math.nan if given.present(world) else power)


def runner_body(pick: Pick, place: Place, given: Passed, holder: str) -> Step:
    """From the weights to the routed output."""
    work = [given.step(holder, lambda f: step(pick, "out", f, place)) for _ in range(pick.upto(1))]
    return joined([multiplied(pick, given, holder), *work])


def returning(body: Step) -> Step:
    return Step((*body.lines, "return out"), body.effect)


def method_body(pick: Pick, place: Place, given: Passed, taken: tuple[str, ...], name: str) -> tuple[list[Unit], Step]:
    """The body of one `apply`: its own, or a choice among runner functions."""
    here = place.named("method")
    if "runner" not in place.guards or pick.chance(2):
        body = returning(runner_body(pick, here, given, "layer"))
        return [], Step((*taken, *body.lines), body.effect)
    bodies = {runner: returning(runner_body(pick, here, given, "layer")) for runner in RUNNERS}
    prefix = f"run_{name.removesuffix('MoEMethod').lower()}"
    units = [
        unit("experts", "\n".join((f"def {prefix}_{r}(layer, hidden_states, topk_weights):", *indented(body.lines))))
        for r, body in bodies.items()
    ]
    lines = pick.one(DISPATCHES)(prefix)
    return units, Step((*taken, *lines), lambda w, power: bodies[w["runner"]].effect(w, power))


def by_branches(prefix: str) -> tuple[str, ...]:
    """`if` and `elif`."""
    words = {"triton": "if", "cutlass": "elif"}
    chosen = [
        line
        for runner, word in words.items()
        for line in (
            f"{word} get_runner_backend().is_{runner}():",
            f"    return {prefix}_{runner}(layer, hidden_states, topk_weights)",
        )
    ]
    return (*chosen, f"return {prefix}_marlin(layer, hidden_states, topk_weights)")


def by_dict(prefix: str) -> tuple[str, ...]:
    """A table of functions."""
    entries = ", ".join(f"RunnerBackend.{runner.upper()}: {prefix}_{runner}" for runner in RUNNERS)
    return (f"runners = {{{entries}}}", "return runners[get_runner_backend()](layer, hidden_states, topk_weights)")


def by_match(prefix: str) -> tuple[str, ...]:
    """A `match` statement."""
    cases = [
        line
        for runner in RUNNERS
        for line in (
            f"    case RunnerBackend.{runner.upper()}:",
            f"        return {prefix}_{runner}(layer, hidden_states, topk_weights)",
        )
    ]
    return ("match get_runner_backend():", *cases)


DISPATCHES = (by_branches, by_branches, by_dict, by_match)


def method_class(name: str, body: Step) -> Unit:
    inside = "\n".join(indented(indented(body.lines)))
    text = f"class {name}(FusedMoEMethodBase):\n    def apply(self, layer, hidden_states, topk_output):\n{inside}\n"
    return unit("experts", text, kept=True)


def experts(pick: Pick, place: Place, factor: Factor, output: str, decided: Decided) -> Layer:
    """The experts, one quant method for each that the program may meet."""
    stored = pick.one(("{}." + NAME, "{}.moe_runner_config." + NAME))
    given = passed(pick, factor, place, stored)
    units = [unit("experts", BASE), unit("experts", QUANTIZATION), unit("experts", DATA)]
    effects: dict[str, Effect] = {}
    taken = (OUTPUTS[output][2], *["hidden_states = hidden_states * layer.w2"] * (decided.fold is not NEVER))
    names = METHODS if "quant" in place.guards else METHODS[:1]
    for name in names:
        more, body = method_body(pick, place, given, taken, name)
        units += [*more, method_class(name, body)]
        effects[name] = body.effect
    more, chosen = choosing(pick, names)
    units += [*more, unit("experts", OFFLOAD), experts_class(stored, given, decided, chosen)]
    made = call(pick, "self.experts", "FusedMoE", ["config", "quant_config"], {NAME: given.argument})

    def effect(world: World, power: float) -> float:
        folded = given.present(world) and decided.fold.test(world)
        return effects[world.get("quant", METHODS[0])](world, power + folded)

    return Layer(units, made, effect)


def choosing(pick: Pick, names: tuple[str, ...]) -> tuple[list[Unit], str]:
    """How the experts get their quant method: the units, and the expression."""
    style = pick.one(("asked", "configured", "named"))
    kinds = [name.removesuffix("MoEMethod") for name in names]
    asked = "quant_config.get_quant_method(self)"
    if style == "asked":
        return [], asked
    if style == "configured":
        return [unit("experts", CONFIG.format(kind=kind), kept=True) for kind in kinds], asked
    lines = [f'    if name == "{kind.lower()}":\n        return {kind}MoEMethod()' for kind in kinds[1:]]
    body = "\n".join([*lines, f"    return {kinds[0]}MoEMethod()"])
    return [
        unit("experts", f"def make_quant_method(name) -> FusedMoEMethodBase:\n{body}")
    ], "make_quant_method(config.quant)"


def experts_class(stored: str, given: Passed, decided: Decided, method: str) -> Unit:
    """`FusedMoE`, which asks the quantisation for its method, wraps it, and computes its flag."""
    lines = [f"self.{NAME} = {NAME}"]
    if "config" in stored:
        lines = [f"self.moe_runner_config = MoeRunnerConfig(config.num_experts_per_tok, {NAME}={NAME})"]
    lines += [f"self.quant_method: FusedMoEMethodBase = {method}"]
    if decided.wrap is not NEVER:
        lines += [f"if {decided.wrap.text}:", f"    self.quant_method = {WRAPPER}(self.quant_method)"]
    if decided.fold is not NEVER:
        folded = f"self.w2.data.mul_({stored.format('self')})"
        given_too = f"{stored.format('self')} is not None and " * given.optional
        lines += ["self.w2 = nn.Parameter(torch.ones(1))", f"if {given_too}{decided.fold.text}:", f"    {folded}"]
    lines += [f"self.should_fuse_scaling_factor = {decided.fuse.text}"]
    init = "\n".join(indented(indented(tuple(lines))))
    return unit("experts", EXPERTS.format(factor=NAME, default=given.default, init=init))
