"""The model of a generated program: where it gets the factor, its forward methods, how shared experts are added."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from .programs_conditions import Condition, Place, condition
from .programs_library import Unit, unit
from .programs_pick import Pick
from .programs_router import NAME, Layer
from .programs_steps import Effect, Factor, Step, guarded, indented, joined, nothing, step, times
from .programs_truth import World

ROUTED = "final_hidden_states"
SHARED = "shared_output"

MLP = """
class SharedMLP(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(1))

    def forward(self, hidden_states):
        return nn.functional.linear(hidden_states, self.weight)
"""
GATE = """
class Gate(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(1))

    def forward(self, hidden_states):
        return nn.functional.linear(hidden_states, self.weight)
"""
BASE = f"""
class MoEBase(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.{NAME} = config.{NAME}

    def scale_routed(self, x):
        return x * self.{NAME}
"""
MIXIN = f"""
class ScalingMixin:
    def scale_routed(self, x):
        return x.mul_(self.{NAME})
"""
OPTIONS = f"""
@dataclass
class ModelOptions:
    top_k: int
    {NAME}: float = 1.0
"""


@dataclass(frozen=True)
class Source:
    """Where the model gets the factor."""

    factor: Factor
    init: tuple[str, ...]
    """Lines of `__init__`, after the first."""
    first: str = "super().__init__()"
    bases: str = "nn.Module"
    members: tuple[str, ...] = ()
    """Lines of the class."""
    units: tuple[Unit, ...] = ()
    method: bool = False
    """Whether the model inherits `scale_routed`."""


def attribute(*lines: str, name: str = NAME) -> Source:
    return Source(Factor(f"self.{name}"), lines)


CONFIG = f"config.{NAME}"
SOURCES = (
    attribute(f"self.{NAME} = {CONFIG}"),
    attribute(f"self.{NAME} = {CONFIG}"),
    attribute(f'self.{NAME} = getattr(config, "{NAME}", 1.0)'),
    attribute(f"self.{NAME} = {CONFIG} if {CONFIG} is not None else 1.0"),
    attribute(f"self.top_k, self.{NAME} = config.num_experts_per_tok, {CONFIG}"),
    attribute(f"self.scaling = {CONFIG}", name="scaling"),
    attribute("self.config = config", name=f"config.{NAME}"),
    attribute(f'self.options = {{"{NAME}": {CONFIG}}}', name=f'options["{NAME}"]'),
    Source(
        Factor(f"self.options.{NAME}"),
        (f"self.options = ModelOptions(config.num_experts_per_tok, {NAME}={CONFIG})",),
        units=(unit("model", OPTIONS),),
    ),
    Source(
        Factor(f"self.{NAME}"),
        ("self.config = config",),
        members=("@property", f"def {NAME}(self):", f"    return self.config.{NAME}", ""),
    ),
    Source(
        Factor(f"self.{NAME}"), (), "super().__init__(config)", "MoEBase", units=(unit("model", BASE),), method=True
    ),
    Source(
        Factor(f"self.{NAME}"),
        (f"self.{NAME} = {CONFIG}",),
        bases="ScalingMixin, nn.Module",
        units=(unit("model", MIXIN),),
        method=True,
    ),
)


def source_of(pick: Pick, place: Place) -> Source:
    """One of `SOURCES`, or the factor under a condition and 1 otherwise."""
    if not pick.chance(6):
        return pick.one(SOURCES)
    where = condition(pick, place.named("init"))
    lines = (
        f"self.{NAME} = {CONFIG} if {where.text} else None",
        f"if self.{NAME} is None:",
        f"    self.{NAME} = 1.0",
    )
    return Source(Factor(f"self.{NAME}", where.test), lines)


# --- Shared experts.

PLAIN_ADDITIONS = ("{x} = {x} + {s}", "{x} += {s}", "{x} = {s} + {x}", "{x} = torch.add({x}, {s})")
SCALED_ADDITIONS = (
    ("{x} = torch.add({s}, {x}, alpha={f})",),
    ("{x} = {s}.add_({x}, alpha={f})",),
    ("{x} = {s} + {x} * {f}",),
    ("{s} += {x} * {f}", "{x} = {s}"),
    ("{x} += {s} * (1.0 / {f})", "{x} *= {f}"),
    ("{x} = ({x} + {s} / {f}) * {f}",),
)
SCALED_SHARED = (("{s} *= {f}", "{x} += {s}"), ("{x} = {x} + {s} / {f}",), ("{x}.add_({s}, alpha={f})",))
"""Ways to add the shared experts: without the factor, with the routed part scaled, with the shared part scaled."""


def addition(pick: Pick, factor: Factor) -> Step:
    """One way to add the shared experts."""
    names = {"x": ROUTED, "s": SHARED, "f": factor.text}
    kind = pick.one(("plain", "plain", "routed", "routed", "shared"))
    if kind == "plain":
        return nothing(pick.one(PLAIN_ADDITIONS).format(**names))
    lines = pick.one(SCALED_ADDITIONS if kind == "routed" else SCALED_SHARED)
    return times(factor, 1 if kind == "routed" else 0, *(line.format(**names) for line in lines))


@dataclass(frozen=True)
class Sharing:
    """How a program has shared experts."""

    init: tuple[str, ...] = ()
    get: tuple[str, ...] = ()
    """Lines that compute `shared_output`, the output or None."""
    maybe: bool = False
    """Whether `shared_output` may be None."""


def sharing_of(pick: Pick, guards: frozenset[str]) -> Sharing:
    """None at all, always, or where the configuration says so."""
    get = f"{SHARED} = self.shared_experts(hidden_states)"
    always = Sharing(("self.shared_experts = SharedMLP(config)",), (get,))
    if "shared" not in guards:
        return pick.one((Sharing(), always, always))
    asked = ("if config.n_shared_experts is not None:", "    self.shared_experts = SharedMLP(config)")
    by_none = ("self.shared_experts = None", *asked)
    return pick.one(
        [
            Sharing(by_none, (f"{get} if self.shared_experts is not None else None",), maybe=True),
            Sharing(asked, (f"{SHARED} = None", 'if hasattr(self, "shared_experts"):', f"    {get}"), maybe=True),
        ]
    )


def combining(pick: Pick, name: str, factor: Factor, place: Place, sharing: Sharing) -> tuple[list[Unit], Step]:
    """The lines of the method `name` that add the shared experts, with the units they need."""
    if not sharing.get:
        return [], joined([])
    if pick.chance(4):
        return helped(pick, name.replace("forward", "combine"), factor, place)
    body = addition(pick, factor)
    if pick.chance(2):
        body = guarded(condition(pick, place), body, addition(pick, factor))
    if not sharing.maybe:
        return [], body
    given = Condition(f"{SHARED} is not None", lambda world: world["shared"] is not None)
    return [], guarded(given, body, step(pick, ROUTED, factor, place) if pick.chance(2) else None)


def helped(pick: Pick, name: str, factor: Factor, place: Place) -> tuple[list[Unit], Step]:
    """A function that adds the shared experts, scaled or not by what it can tell from the experts."""
    where = condition(pick, place.named("function"))
    source = f"""
    def {name}(experts, routed, shared, factor):
        if {where.text}:
            if shared is None:
                return routed * factor
            return torch.add(shared, routed, alpha=factor)
        return routed if shared is None else routed + shared
    """
    line = f"{ROUTED} = {name}(self.experts, {ROUTED}, {SHARED}, {factor.text})"
    once = Step((line,), lambda world, power: power + where.test(world) * factor.power(world))
    return [unit("experts", source)], once


# --- Forward methods.


@dataclass(frozen=True)
class Method:
    """A forward method of the model."""

    name: str
    lines: tuple[str, ...]
    units: list[Unit]
    effect: Effect = field(repr=False)


def early(test: Condition, rest: Step) -> Step:
    """A return before the rest where the condition holds."""
    lines = (f"if {test.text}:", f"    return {ROUTED}", *rest.lines)
    return Step(lines, lambda world, power: power if test.test(world) else rest.effect(world, power))


def model_step(pick: Pick, source: Source, place: Place) -> Step:
    """What a forward method does to the routed part."""
    if source.method and pick.chance(3):
        applied = times(source.factor, 1, f"{ROUTED} = self.scale_routed({ROUTED})")
        return guarded(condition(pick, place), applied) if pick.chance(2) else applied
    return step(pick, ROUTED, source.factor, place)


def forward(
    pick: Pick, name: str, source: Source, place: Place, sharing: Sharing, layers: Callable[[World], float]
) -> Method:
    """A method that routes, runs the experts and combines."""
    here = place.named("model")
    before = [model_step(pick, source, here) for _ in range(pick.upto(1))]
    units, combine = combining(pick, name, source.factor, here, sharing)
    rest = joined([combine, *(model_step(pick, source, here) for _ in range(pick.upto(1)))])
    body = joined([*before, early(condition(pick, here), rest) if pick.chance(6) else rest])
    calls = (
        *sharing.get,
        "router_logits = self.gate(hidden_states)",
        "topk_output = self.topk(hidden_states, router_logits)",
        f"{ROUTED} = self.experts(hidden_states, topk_output)",
    )
    lines = (f"def {name}(self, hidden_states):", *indented((*calls, *body.lines, f"return {ROUTED}")))
    return Method(name, lines, units, lambda world, _: body.effect(world, layers(world)))


def dispatching(pick: Pick, yes: Method, no: Method, place: Place) -> Method:
    """`forward`, which chooses between two."""
    test = condition(pick, place.named("model"))
    style = pick.one(("branch", "expression", "chosen"))
    other = f"self.{no.name}(hidden_states)"
    lines: tuple[str, ...] = (f"if {test.text}:", f"    return self.{yes.name}(hidden_states)", f"return {other}")
    if style == "expression":
        lines = (f"return self.{yes.name}(hidden_states) if {test.text} else {other}",)
    if style == "chosen":
        lines = (f"run = self.{yes.name} if {test.text} else self.{no.name}", "return run(hidden_states)")

    def effect(world: World, power: float) -> float:
        return (yes if test.test(world) else no).effect(world, power)

    return Method("forward", ("def forward(self, hidden_states):", *indented(lines)), [], effect)


def model_class(source: Source, layers: list[Layer], sharing: Sharing, methods: list[Method], place: Place) -> Unit:
    """The class."""
    init = [source.first, *source.init]
    if "renorm" in place.guards:
        init.append("self.renormalize = config.norm_topk_prob")
    init += [*sharing.init, "self.gate = Gate(config)", *(line for layer in layers for line in layer.make)]
    members = [*source.members, "def __init__(self, config, quant_config: QuantizationConfig):", *indented(tuple(init))]
    members += [line for method in methods for line in ("", *method.lines)]
    lines = (f"class SparseMoE({source.bases}):", *indented(tuple(members)))
    return unit("model", "\n".join(line.rstrip() for line in lines), kept=True)
