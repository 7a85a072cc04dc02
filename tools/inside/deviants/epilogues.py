"""Methods of one class that finish the same work: does each of them apply the factor when the others do?"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from ..exactly_once.program import Class
from .conditions import PLATFORMS, Judge, Setting, platform_of, tested_classes
from .sites import Site, applications
from .survey import Place, Survey, Suspect, flags_in
from .wiring import Wiring, wirings

BUILDERS = ("__init__", "__post_init__")
Epilogues = dict[str, list[Site]]
"""The applications of each method that has any."""


def look(survey: Survey) -> Iterator[Suspect]:
    """Compare the methods of every class that applies the factor."""
    for owner in survey.classes:
        found = {n: applications(survey, f, inline=True) for n, f in owner.functions.items()}
        methods = {n: s for n, s in found.items() if s and n not in BUILDERS}
        if not methods:
            continue
        for sites in methods.values():
            survey.note(sites[0].function)
        wired = wirings(survey, owner)
        yield from _folded_and_applied(survey, methods, wired)
        yield from _one_class_left_out(survey, methods)
        yield from _nobody_knows_the_switch(survey, owner, methods, wired)


def _applies(survey: Survey, site: Site, setting: Setting) -> bool | None:
    return site.applies(Judge(survey, site.function), setting)


def _folded_and_applied(survey: Survey, methods: Epilogues, wired: list[Wiring]) -> Iterator[Suspect]:
    """The router is told by a flag to apply the factor; one method asks the flag, another applies it all the same."""
    told = [w for w in wired if flags_in(w.flag, survey)]
    if not told:
        return
    everything = [site for sites in methods.values() for site in sites]
    asking = []
    for site in everything:
        setting = Setting(platform_of(site.function.module.path))
        on, off = setting.but(flags=True), setting
        if _applies(survey, site, off) and _applies(survey, site, on) is False:
            asking.append(site)
    for sites in methods.values():
        platform = platform_of(sites[0].function.module.path)
        first = next((s for s in sites if _applies(survey, s, Setting(platform, flags=True))), None)
        others = [s for s in asking if first and s.function.name != first.function.name]
        if first is None or not others:
            continue
        flag = ", ".join(sorted(flags_in(told[0].flag, survey)))
        why = f"{first.function.qualname} multiplies by {survey.factor} without asking `{flag}`, with which the router"
        see = (survey.place(told[0].function, told[0].node, "told to apply it"), *_places(survey, others, "asks"))
        yield Suspect(
            "twice",
            "flag not asked",
            survey.place(first.function, first.node),
            f"{why} applies it already; {others[0].function.name} asks it",
            f"{flag} is true",
            see,
        )


def _one_class_left_out(survey: Survey, methods: Epilogues) -> Iterator[Suspect]:
    """One method applies the factor for a class of its own accord, a method that does the same work doesn't."""
    named = {n: tested_classes(t for s in sites for t, _ in s.tests) for n, sites in methods.items()}
    for name in sorted({c for classes in named.values() for c in classes}):
        for method, sites in methods.items():
            setting = Setting(platform_of(sites[0].function.module.path), classes=frozenset({name}))
            if any(_applies(survey, s, setting) is not False for s in sites):
                continue
            twins = [
                s
                for other, there in methods.items()
                if other != method and name in named[other] and _alike(sites[0], there[0])
                for s in there
                if _applies(survey, s, setting) and not _applies(survey, s, setting.but(classes=frozenset()))
            ]
            if twins and name not in named[method]:
                short = name.rpartition(":")[2]
                yield Suspect(
                    "never",
                    "class left out",
                    survey.place(sites[0].function, sites[0].node),
                    f"{twins[0].function.qualname} multiplies by {survey.factor} for {short}; "
                    f"{sites[0].function.name}, which does the same work, doesn't",
                    f"the class is {short}",
                    _places(survey, twins, "names the class"),
                )


def _alike(one: Site, other: Site) -> bool:
    """Whether two methods do the same work: named alike, and handed the same."""
    names = [s.function.name.strip("_").split("_")[0] for s in (one, other)]
    handed = [{a.arg for a in s.function.node.args.args} - {"self"} for s in (one, other)]
    return names[0] == names[1] and bool(handed[0] & handed[1])


def _nobody_knows_the_switch(
    survey: Survey, owner: Class, methods: Epilogues, wired: list[Wiring]
) -> Iterator[Suspect]:
    """A method leaves the factor to the router under a switch of which one of the routers has never heard."""
    told: dict[tuple[str, str], list[Site]] = {}
    for sites in methods.values():
        judge = Judge(survey, sites[0].function)
        for switch in sorted(_switches(survey, sites)):
            setting = _home(judge, switch)
            on, off = setting.but(known={switch: True}), setting.but(known={switch: False})
            if any(s.applies(judge, on) is not False for s in sites) or not any(s.applies(judge, off) for s in sites):
                continue
            for wiring in wired:
                if _ignorant(survey, wiring, switch, on):
                    told.setdefault((switch, wiring.router), []).append(next(s for s in sites if s.applies(judge, off)))
    for (switch, router), excused in told.items():
        wiring = next(w for w in wired if w.router == router)
        first, *others = excused
        yield Suspect(
            "never",
            "switch unknown to the router",
            survey.place(first.function, first.node),
            f"{', '.join(s.function.name for s in excused)} of {owner.name} leave {survey.factor} to the router when "
            f"{switch}; {router} applies it only when it is told, and is not",
            f"{switch} and the router is {router}",
            (survey.place(wiring.function, wiring.node, "built here"), *_places(survey, others, "likewise")),
        )


def _ignorant(survey: Survey, wiring: Wiring, switch: str, setting: Setting) -> bool:
    """Whether a router isn't told to apply the factor, and its file doesn't know the switch."""
    if wiring.folds(Judge(survey, wiring.function), setting) is not False:
        return False
    router = survey.class_named(wiring.router)
    return router is not None and not _knows(router, switch)


def _knows(router: Class, switch: str) -> bool:
    words = [w for w in switch.strip("_").split("_") if w not in ("use", "is", "has", "enable", "enabled")]
    return any(re.search(rf"(?i){re.escape(word)}", router.module.text) for word in words)


def _switches(survey: Survey, sites: list[Site]) -> set[str]:
    """Names at the top level of a module that tests ask beside platforms and flags."""
    found = set()
    for site in sites:
        for test, _ in site.tests:
            for node in ast.walk(test):
                name = node.id if isinstance(node, ast.Name) else ""
                bound = name in site.function.module.binders and not survey.is_flag(name)
                if bound and re.match(r"_*(use|enable|has)_", name):
                    found.add(name)
    return found


def _home(judge: Judge, switch: str) -> Setting:
    """The first platform on which a switch can be on."""
    made = judge.made(switch)
    for platform in PLATFORMS:
        if "aiter" in switch and platform != "hip":
            continue
        if made is None or judge.decide(made, Setting(platform)) is not False:
            return Setting(platform)
    return Setting()


def _places(survey: Survey, sites: list[Site], note: str) -> tuple[Place, ...]:
    return tuple(survey.place(s.function, s.node, note) for s in sites[:3])
