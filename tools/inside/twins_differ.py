"""Where twins differ: one does what another doesn't, or asks first what another doesn't ask."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .twins_code import Sign
from .twins_groups import Group
from .twins_uses import EFFECTS, Doings, Use

WEIGHTS = {
    "multiply": 100,
    "divide": 100,
    "reduces": 80,
    "assertion": 50,
    "computes": 45,
    "passed": 30,
    "condition": 20,
    "called": 10,
    "read": 10,
}
DONE = (*EFFECTS, "passed")
"""Kinds that are compared between twins; whether a name is merely read says little."""


@dataclass(frozen=True)
class Difference:
    """One twin does something to a name that another does otherwise.

    Attributes:
        kind: guard_missing (it doesn't ask what the other asks first), guard_opposite (it asks the reverse) or
            not_done (it never does it).
        member: who lacks it.
        example: the twin that has it, with what it does and when in `use`.
        guards: the settings that aren't asked about; empty for not_done.
        share: how many of the twins that could have it do.
        alike: from 0 to 1, how much the two do it in the same words and under the same settings otherwise.
        own: what the member itself does to the name instead.
        unseen: why the member may do it after all, where nobody sees it.
    """

    kind: str
    subject: str
    done: str
    member: str
    example: str
    use: Use
    guards: tuple[str, ...]
    share: tuple[int, int]
    alike: float = 0.0
    own: Use | None = None
    unseen: str = ""

    def identities(self, name: str) -> set[tuple[str, ...]]:
        """What makes it the same difference before and after a patch, under the member's present name."""
        # Whether it lacks the factor or the divisor is the same lack.
        applied = self.kind == "not_done" and self.done in ("multiply", "divide")
        head = (self.kind, self.subject, "applied" if applied else self.done, name)
        return {(*head, guard) for guard in self.guards} or {head}

    @property
    def strong(self) -> bool:
        """It is about what is computed, not about who is handed what."""
        return self.done in EFFECTS

    def about(self, words: Sequence[str]) -> bool:
        """Whether it concerns one of the names asked for."""
        return bool({self.subject, *self.guards, *(g.rpartition(".")[2] for g in self.guards)} & set(words))

    def rank(self, close: bool) -> float:
        """Larger is more telling."""
        have, could = self.share
        weight = WEIGHTS.get(self.done, 10) * (0.5 + have / (2 * max(could, 1)))
        weight *= {"guard_missing": 0.6 + self.alike, "guard_opposite": 1.5}.get(self.kind, 1.0)
        return weight * (1.0 if close else 0.4) * (0.3 if self.unseen else 1.0)


def differences(group: Group, done: dict[str, Doings]) -> list[Difference]:
    """All differences inside a group, `done` being what each of its members does."""
    acts: dict[tuple[str, str], dict[str, list[Use]]] = {}
    for member in group.members:
        for use in done[member.name].uses:
            if use.kind in DONE:
                acts.setdefault((use.subject, use.kind), {}).setdefault(member.name, []).append(use)
    found: list[Difference] = []
    for (subject, kind), by_member in acts.items():
        if kind in EFFECTS:
            found += _not_done(group, done, subject, kind, by_member)
        found += _guards(group, done, subject, kind, by_member)
    return found


def _not_done(
    group: Group, done: dict[str, Doings], subject: str, kind: str, by_member: dict[str, list[Use]]
) -> list[Difference]:
    example = next(iter(by_member))
    share = (len(by_member), len(group.members))
    found = []
    for member in group.members:
        doing = done[member.name]
        if member.name in by_member or _in_another_form(doing, subject, kind):
            continue
        own = next((use for use in doing.uses if use.subject == subject), None)
        unseen = f"it is handed to {own.text}" if own is not None and own.kind == "passed" else ""
        if not unseen and doing.hands_self:
            unseen = f"it hands itself to {doing.hands_self[0]}"
        use = by_member[example][0]
        found.append(Difference("not_done", subject, kind, member.name, example, use, (), share, 0.0, own, unseen))
    return found


def _in_another_form(doing: Doings, subject: str, kind: str) -> bool:
    """What twins refuse by an assertion and this one deals with is no absence."""
    dealt = ("condition", "multiply", "divide", "passed", "read", "called")
    return kind == "assertion" and any(use.subject == subject and use.kind in dealt for use in doing.uses)


def _guards(
    group: Group, done: dict[str, Doings], subject: str, kind: str, by_member: dict[str, list[Use]]
) -> list[Difference]:
    """Settings that one twin asks about before every such use, and another before none, or the other way round."""
    # What one twin asks before it leaves the job to another is the choice between them, not a guard of the job.
    choice = set().union(*(done[member.name].choice for member in group.members))
    always = {
        name: frozenset(s for s in frozenset.intersection(*(use.signs for use in uses)) if s[0] not in choice)
        for name, uses in by_member.items()
    }
    found = []
    for name, uses in by_member.items():
        asked = _asked(done[name], uses)
        for other, signs in always.items():
            missing = tuple(sorted({guard for guard, _ in signs if guard not in asked}))
            reverse = tuple(sorted(g for g, sign in signs if sign == "+" and (g, "-") in always[name]))
            alike = _alike(uses, by_member[other], always[name], signs)
            share = (sum(bool(set(missing) & {g for g, _ in each}) for each in always.values()), len(by_member))
            for what, guards in (("guard_missing", missing), ("guard_opposite", reverse)):
                if guards and other != name:
                    example = by_member[other][0]
                    row = (what, subject, kind, name, other, example, guards, share, alike, uses[0])
                    found.append(Difference(*row))
    return found


def _alike(own: list[Use], other: list[Use], signs: frozenset[Sign], others: frozenset[Sign]) -> float:
    """How much two twins do in the same words and under the same settings, from 0 to 1."""
    words = {use.text for use in own}, {use.text for use in other}
    shared = [len(a & b) / max(1, len(a | b)) for a, b in (words, (signs, others))]
    return round(sum(shared) / 2, 2)


def _asked(doing: Doings, uses: list[Use]) -> set[str]:
    """Everything a member asks about before such a use, asserts, or is only called under."""
    return {name for use in uses for name, _ in use.signs} | doing.asserted | doing.around
