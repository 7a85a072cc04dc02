"""The router of a generated program, and how a layer gets the factor: text, and the power left in the routed part."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from .programs_conditions import Condition, Place, Test, condition
from .programs_library import Unit, unit
from .programs_pick import Pick
from .programs_steps import Effect, Factor, Step, guarded, indented, joined, nothing, step

ALWAYS = Condition("True", lambda world: True)
NEVER = Condition("False", lambda world: False)
NAME = "routed_scaling_factor"


@dataclass(frozen=True)
class Passed:
    """How a layer gets the factor."""

    argument: str | None
    """The expression passed by the call that makes the layer, or None when it is left out."""
    default: str
    """The default of the parameter."""
    text: str
    """The expression for it inside; `{}` is the holder."""
    given: Test = field(repr=False)
    """Whether it isn't None inside."""
    present: Test = field(repr=False)
    """Whether it is the factor inside, and not None or 1."""

    @property
    def optional(self) -> bool:
        return self.default == "None"

    def step(self, holder: str, make: Callable[[Factor], Step]) -> Step:
        """A step with the factor, behind `is not None` where it may be None."""
        inside = Factor(self.text.format(holder), self.present)
        if not self.optional:
            return make(inside)
        return guarded(Condition(f"{inside.text} is not None", self.given), make(inside))


def passed(pick: Pick, factor: Factor, place: Place, text: str) -> Passed:
    """A way to hand the factor to a layer, which then holds it as `text`."""
    kind = pick.one(("given", "given", "left out", "sometimes"))
    default = pick.one(("1.0", "None"))
    if kind == "left out":
        return Passed(None, default, text, NEVER.test, NEVER.test)
    if kind == "given":
        return Passed(factor.text, default, text, ALWAYS.test, factor.present)
    where = condition(pick, place.named("init"))
    argument = f"{factor.text} if {where.text} else {default}"
    return Passed(argument, default, text, where.test, lambda w: where.test(w) and factor.present(w))


@dataclass(frozen=True)
class Layer:
    """Definitions, how to make one, and its effect."""

    units: list[Unit]
    make: tuple[str, ...]
    """Lines of the model's `__init__`."""
    effect: Effect = field(repr=False)


def call(pick: Pick, target: str, maker: str, first: list[str], options: dict[str, str | None]) -> tuple[str, ...]:
    """Lines that set `target` to `maker(…)`: options go by keyword, by position or through a dict; None is left out."""
    style = pick.one(("keywords", "positions", "dict"))
    if style == "positions" and all(options.values()):
        return (f"{target} = {maker}({', '.join([*first, *map(str, options.values())])})",)
    keywords = [f"{name}={value}" for name, value in options.items() if value]
    if style == "dict":
        return f"options = dict({', '.join(keywords)})", f"{target} = {maker}({', '.join([*first, '**options'])})"
    return (f"{target} = {maker}({', '.join([*first, *keywords])})",)


# --- The router.

NORMALISATIONS = (
    "{w} = {w} / {w}.sum(dim=-1, keepdim=True)",
    "{w} /= {w}.sum(dim=-1, keepdim=True)",
    "{w} = torch.div({w}, torch.sum({w}, dim=-1, keepdim=True))",
)
WEIGHTS = "topk_weights"


def normalisation(pick: Pick, place: Place) -> Step:
    """A renormalisation, which divides out whatever is in the weights already."""
    always = Step((pick.one(NORMALISATIONS).format(w=WEIGHTS),), lambda world, power: 0)
    if "renorm" in place.guards and pick.chance(2):
        return guarded(Condition("self.renormalize", lambda world: bool(world["renorm"])), always)
    return always


def router_body(pick: Pick, place: Place, given: Passed) -> Step:
    """What happens to the weights, in any order."""
    body = [given.step("self", lambda f: step(pick, WEIGHTS, f, place)) for _ in range(pick.upto(2))]
    if pick.chance(2):
        body.insert(pick.upto(len(body)), normalisation(pick, place))
    return joined([weighing(pick, place, given), *(body or [nothing(f"{WEIGHTS} = {WEIGHTS}.contiguous()")])])


def weighing(pick: Pick, place: Place, given: Passed) -> Step:
    """How the weights come about: in torch, or by a kernel that applies the factor where it is told to."""
    if given.optional or not pick.chance(8):
        return nothing(*WEIGHING)
    factor = Factor(given.text.format("self"), given.present)
    flag = "self.apply_routed_scaling_factor_on_output"
    line = f"topk_weights, topk_ids = moe_fused_gate(router_logits, None, 1, 1, self.top_k, 0, {factor.text}, {flag})"
    return Step((line,), lambda w, power: power + factor.power(w) * place.fused(w))


OUTPUTS = {
    "tuple": ("", "topk_weights, topk_ids", "topk_weights, _ = topk_output"),
    "named": (
        "class TopKOutput(NamedTuple):\n    topk_weights: torch.Tensor\n    topk_ids: torch.Tensor\n",
        "TopKOutput(topk_weights, topk_ids)",
        "topk_weights, _ = topk_output",
    ),
    "record": (
        "@dataclass\nclass TopKOutput:\n    topk_weights: torch.Tensor\n    topk_ids: torch.Tensor\n",
        "TopKOutput(topk_weights=topk_weights, topk_ids=topk_ids)",
        "topk_weights = topk_output.topk_weights",
    ),
}
"""How a router hands over: the class, what it returns, and how the experts take it apart."""

ROUTER = """
class {name}(nn.Module):
    def __init__(self, top_k, renormalize={no}, {factor}={default}, apply_routed_scaling_factor_on_output={no}):
        super().__init__()
        self.top_k = top_k
        self.renormalize = renormalize
        self.{factor} = {factor}
        self.apply_routed_scaling_factor_on_output = apply_routed_scaling_factor_on_output

    def forward(self, hidden_states, router_logits):
{body}
"""
WEIGHING = (
    "scores = torch.softmax(router_logits, dim=-1)",
    "topk_weights, topk_ids = torch.topk(scores, k=self.top_k, dim=-1)",
)


def router_class(pick: Pick, name: str, body: Step, default: str, returned: str) -> list[Unit]:
    """A router that does the work itself, or leaves it to a function."""
    lines = [*body.lines, f"return {returned}"]
    extra: list[Unit] = []
    if pick.chance(2):
        function = f"select_{name.lower()}"
        names = ["renormalize", NAME, "apply_routed_scaling_factor_on_output"]
        own = "\n".join(indented(tuple(line.replace("self.", "") for line in lines)))
        extra = [unit("topk", f"def {function}(router_logits, top_k, {', '.join(names)}):\n{own}\n")]
        lines = [f"return {function}(router_logits, self.top_k, {', '.join(f'{n}=self.{n}' for n in names)})"]
    inside = "\n".join(indented(indented(tuple(lines))))
    return [*extra, unit("topk", ROUTER.format(name=name, no=False, factor=NAME, default=default, body=inside))]


def router(pick: Pick, place: Place, factor: Factor, output: str) -> Layer:
    """One router, or two of which the configuration picks one."""
    given = passed(pick, factor, place, "{}." + NAME)
    record, returned, _ = OUTPUTS[output]
    here = place.named("router")
    plain = router_body(pick, here, given)
    units = [unit("topk", record)] if record else []
    units += router_class(pick, "TopK", plain, given.default, returned)
    options = {
        "renormalize": "config.norm_topk_prob",
        NAME: given.argument,
        "apply_routed_scaling_factor_on_output": "self.experts.should_fuse_scaling_factor",
    }
    first = ["config.num_experts_per_tok"]
    if "hash" not in place.guards:
        return Layer(units, call(pick, "self.topk", "TopK", first, options), plain.effect)
    hashed = router_body(pick, here, given)
    units += router_class(pick, "HashTopK", hashed, given.default, returned)
    lines = ["self.is_hash = config.use_hash"]
    if pick.chance(2):
        yes, no = (call(pick, "self.topk", name, first, options) for name in ("HashTopK", "TopK"))
        lines += ["if self.is_hash:", *indented(yes), "else:", *indented(no)]
    else:
        lines += ["router = HashTopK if self.is_hash else TopK", *call(pick, "self.topk", "router", first, options)]
    return Layer(units, tuple(lines), lambda w, power: (hashed if w["hash"] else plain).effect(w, power))
