"""Where a changed class behaves otherwise: the same methods before and after, whatever the constructor was given."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from .change import GAVE_UP, Asked, paired
from .diagram import Node, support
from .engine import Engine
from .entries import FORWARDS, Entry
from .focus import Cubes
from .follow import construct, run
from .instances import ManyClasses
from .program import Class, Function, Program
from .table import spell
from .units import Changed
from .values import Const, Member, Obj, Opaque, Power

SECONDS = 15.0
"""How long one class is compared by itself."""
MOST_CUBES = 64


@dataclass
class Unit:
    """One changed class, compared by itself.

    Attributes:
        methods: the methods that were compared.
        rows: what they come to, before and after, and when.
        cubes: conditions on the constructor's parameters, outside of which nothing differs; None if none are known.
        why: why none are.
        parameters: the constructor's parameters by whose truth the outcome may differ.
        contract: for each of these parameters, what the count is where it is true, and where it is false.
        siblings: classes that the tree makes in the place of this one, and what they do with the same parameters.
    """

    path: str
    name: str
    methods: list[str] = field(default_factory=list)
    rows: list[dict[str, Any]] = field(default_factory=list)
    cubes: Cubes | None = None
    why: str = ""
    parameters: list[str] = field(default_factory=list)
    contract: dict[str, dict[str, list[int]]] = field(default_factory=dict)
    siblings: list[dict[str, Any]] = field(default_factory=list)


def confine(asked: Asked, path: str, name: str, changed: Changed) -> Unit:
    """Compare a class before and after by itself."""
    unit = Unit(path, name)
    owners = [class_named(program, path, name) for program in (asked.before, asked.after)]
    effects = sorted(f for p, f in changed.effects if (p, f.partition(".")[0]) == (path, name))
    if owners[0] is None or owners[1] is None:
        unit.why = f"{name} exists on one side only"
    elif effects:
        unit.why = f"{', '.join(effects)} may take other arguments or have other effects than before"
    elif any("__init__" not in owner.functions for owner in owners if owner):
        unit.why = f"{name} has no constructor of its own"
    else:
        try:
            _compare(asked, [owner for owner in owners if owner], changed, unit)
        except (*GAVE_UP, ManyClasses) as error:
            unit.why = str(error) or "calls inside calls, deeper than can be followed"
    return unit


def class_named(program: Program, path: str, name: str) -> Class | None:
    """A class at the top level of a file, None if there is none."""
    made = program.top_level(path, name) if program.tree.is_file(path) else None
    return made if isinstance(made, Class) else None


def _compare(asked: Asked, owners: list[Class], changed: Changed, unit: Unit) -> None:
    mine = changed.classes.get((unit.path, unit.name), [])
    first = [m for m in FORWARDS if m in owners[0].functions and m in owners[1].functions][:1]
    unit.methods = list(dict.fromkeys([*first, *(m for m in mine if m != "__init__")]))
    if not all(m in owner.functions for m in unit.methods for owner in owners):
        unit.why = "a method exists on one side only"
        return
    new = changed.attributes.get((unit.path, unit.name), set())
    cubes: Cubes = []
    until = min(asked.effort.after(SECONDS), asked.until)
    for method in unit.methods:
        engines = asked.engines(until)
        different = _differing(engines, owners, method, new, unit)
        cubes += _on_parameters(different, engines[1], owners[1])
        if len(cubes) > MOST_CUBES or {} in cubes:
            unit.why = f"{unit.name}.{method} may differ whatever its constructor is given"
            return
    unit.cubes = [dict(items) for items in dict.fromkeys(tuple(sorted(cube.items())) for cube in cubes)]


def _differing(engines: list[Engine], owners: list[Class], method: str, new: set[str], unit: Unit) -> Node:
    """The worlds in which a method, or the object, isn't what it was; what it comes to is noted."""
    d = engines[0].diagrams
    entries = [Entry(Function(o.module, o.functions[method].node, o)) for o in owners]
    built = [construct(engine, entry) for engine, entry in zip(engines, entries, strict=True)]
    different = _other_attributes(engines, built, new)
    results = [run(engine, at, obj) for engine, at, obj in zip(engines, entries, built, strict=True)]
    pair = paired(engines, results)
    tested = support(pair)
    unit.parameters += [n for n in parameters(owners[1]) if n in tested and n not in unit.parameters]
    for (before, after), when in d.values(pair):
        cubes = [spell(cube, engines[1]) for cube in islice(d.cubes(when), 3)]
        counts = (before.outcome.count, after.outcome.count)
        row = {"method": method, "before": before.says, "after": after.says, "when": cubes}
        unit.rows.append({**row, "count_before": counts[0], "count_after": counts[1]})
        # Two values that aren't known may differ, for all that the reason is the same.
        if before.key != after.key or before.outcome.unknown:
            different = d.either(different, when)
    return different


def _other_attributes(engines: list[Engine], built: list[Obj | None], new: set[str]) -> Node:
    """The worlds in which an attribute that both states set has another value."""
    d = engines[0].diagrams
    different = d.false
    if built[0] is None or built[1] is None:
        return d.true
    for name in (built[0].attrs.keys() | built[1].attrs.keys()) - new:
        sides = [obj.attrs.get(name, engines[0].unbound) for obj in built if obj]
        pair = d.map2(lambda a, b: not _alike(a, b), *sides)
        different = d.either(different, pair)
    alive = d.both(engines[0].alive, engines[1].alive)
    return d.both(alive, different)


def _alike(a: Any, b: Any) -> bool:
    """Whether values of two trees are the same as far as can be told."""
    if isinstance(a, Const | Power) or a is b:
        return bool(a == b)
    if isinstance(a, Opaque) and isinstance(b, Opaque):
        return a.text == b.text
    if isinstance(a, Member) and isinstance(b, Member):
        return (a.owner.name, a.name) == (b.owner.name, b.name)
    return type(a) is type(b) and str(getattr(a, "text", a)) == str(getattr(b, "text", b))


def _on_parameters(different: Node, engine: Engine, owner: Class) -> Cubes:
    """What a condition says of the truth of the constructor's parameters; whatever else it says is left out."""
    names, guards = parameters(owner), engine.diagrams.guards
    found: Cubes = []
    for cube in islice(engine.diagrams.cubes(different), MOST_CUBES + 1):
        kept = {k: v for k, v in cube.items() if k in names and guards[k].values == ("true", "false")}
        if kept not in found:
            found.append(kept)
    return found


def parameters(owner: Class) -> list[str]:
    """Names of the parameters of a class's own constructor, without the object itself."""
    init = owner.functions.get("__init__")
    if init is None:
        return []
    spec = init.node.args
    return [a.arg for a in [*spec.posonlyargs, *spec.args, *spec.kwonlyargs]][1:]
