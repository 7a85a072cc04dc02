"""Random small source trees that apply a factor a known number of times: mixture-of-experts layers as in engines.

`programs()` makes them. What each does in each world is found by running it (`programs_truth.truth`); the maker's own
bookkeeping (`Program.believed`) is there to be compared with that.
"""

from __future__ import annotations

import math

from hypothesis import strategies as st

from .programs_blind import blinded
from .programs_conditions import GUARDS, Place
from .programs_experts import decisions, experts
from .programs_library import LAYOUTS, Unit, library, tree, unit
from .programs_model import GATE, MLP, Method, dispatching, forward, model_class, sharing_of, source_of
from .programs_pick import Pick
from .programs_router import NAME, OUTPUTS, Layer, router
from .programs_steps import Raised
from .programs_truth import UNDECIDED, Program, World

MOST_GUARDS = 3


@st.composite
def programs(draw: st.DrawFn, blind: bool = False) -> Program:
    """A program; a `blind` one does something that reading can't follow."""
    pick = Pick(draw)
    made = program(pick, pick.some(sorted(GUARDS), MOST_GUARDS))
    return blinded(pick, made) if blind else made


def program(pick: Pick, guards: list[str]) -> Program:
    """A program that may ask for these guards."""
    decided = decisions(pick, frozenset(guards))
    place = Place("model", frozenset(guards), decided.wrap.test, decided.fuse.test)
    output = pick.one(sorted(OUTPUTS))
    source = source_of(pick, place)
    layers = [experts(pick, place, source.factor, output, decided), router(pick, place, source.factor, output)]
    sharing = sharing_of(pick, place.guards)

    def routed(world: World) -> float:
        return layers[0].effect(world, layers[1].effect(world, 0))

    methods = [forward(pick, "forward_normal", source, place, sharing, routed)]
    if pick.chance(2):
        methods.append(forward(pick, "forward_overlapped", source, place, sharing, routed))
        methods.append(dispatching(pick, methods[1], methods[0], place))
    units = [
        *library(pick),
        *parts(layers, methods),
        *source.units,
        model_class(source, layers, sharing, methods, place),
    ]
    return assembled(pick, units, methods[-1], guards)


def parts(layers: list[Layer], methods: list[Method]) -> list[Unit]:
    """The units of the layers and of what the methods call; the same helper once."""
    own = [u for layer in reversed(layers) for u in layer.units]
    helpers = {u.source: u for method in methods for u in method.units}
    return [*own, *helpers.values(), unit("model", GATE), unit("model", MLP)]


def assembled(pick: Pick, units: list[Unit], entry: Method, guards: list[str]) -> Program:
    """The files, and what is believed about them."""
    layout = pick.one(LAYOUTS)
    files = tree(units, layout, relative=pick.chance(2))
    values = {key: GUARDS[key] for key in guards}

    def believed(world: World) -> int | str:
        try:
            power = entry.effect(world, 0)
        except Raised:
            return "raises"
        return UNDECIDED if math.isnan(power) else round(power)

    return Program(files, f"engine/{layout['model']}.py::SparseMoE.{entry.name}", NAME, values, believed)
