"""Which worlds to run: all of them where the budget allows, else those that tell most, and never a guess for the rest.

The tree of answers is walked from the run that gives every default, by the number of answers that differ from it. Each
run branches only on questions after its own last deviation, so that no world is run twice; when nothing is left, every
world has been run. Where the tree is too large, the rest of the budget goes to runs with random answers: whatever
question changes the count then shows up, and the worlds say that they rest on samples.
"""

from __future__ import annotations

import heapq
import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count

from .trial import Result

Plan = dict[str, str]
Branch = tuple[int, Plan, int]
"""Price, answers, and how many of them are given."""
RunOne = Callable[[Plan], Result]


@dataclass
class Explored:
    """The runs made.

    Attributes:
        runs: the answers given in each, and its result.
        complete: whether every world was run.
        left: worlds known of and not run.
    """

    runs: list[tuple[Plan, Result]] = field(default_factory=list)
    complete: bool = False
    left: int = 0


@dataclass
class Budget:
    """How much may be run."""

    runs: int = 400
    seconds: float = 40.0
    systematic: float = 0.6
    """Share that goes to the walk before random answers begin."""


def explore(run_one: RunOne, budget: Budget, seed: int = 0) -> Explored:
    """Run worlds until none is left or the budget ends."""
    walk = _Walk(run_one, budget)
    walk.systematic()
    if not walk.queue:
        walk.found.complete = True
    else:
        walk.found.left = len(walk.queue)
        walk.samples(random.Random(seed))
    return walk.found


class _Walk:
    def __init__(self, run_one: RunOne, budget: Budget) -> None:
        self.run_one, self.budget = run_one, budget
        self.found = Explored()
        self.made = 0
        self.good = False
        self.started = time.monotonic()
        self.order = count()
        self.queue: list[tuple[int, int, Plan, int]] = [(0, next(self.order), {}, 0)]
        self.liked: dict[str, dict[str, int]] = {}

    def _spent(self, share: float) -> bool:
        late = time.monotonic() - self.started > self.budget.seconds * share
        return late or self.made >= self.budget.runs * share

    def systematic(self) -> None:
        """The walk; a run that ends in an exception doesn't count as a deviation where its last answer is turned."""
        while self.queue and not self._spent(self.budget.systematic if self._large() and self.good else 1.0):
            cost, _, plan, fixed = heapq.heappop(self.queue)
            result = self._run(plan)
            open_ = [c for c in result.choices[fixed:] if not c["fixed"]]
            given = {c["name"]: c["options"][c["answer"]] for c in result.choices[:fixed]}
            branches: list[Branch] = []
            for choice in result.choices[fixed:]:
                answer = choice["options"][choice["answer"]]
                fixed += 1
                for other in choice["options"] if not choice["fixed"] else ():
                    if other != answer:
                        self._branch(
                            branches, result, choice is open_[-1], (cost, {**given, choice["name"]: other}, fixed)
                        )
                given[choice["name"]] = answer
            for price, branch, depth in branches if result.count is not None else _from_both_ends(branches):
                heapq.heappush(self.queue, (price, next(self.order), branch, depth))

    def _branch(self, branches: list[Branch], result: Result, last: bool, branch: Branch) -> None:
        """Where a run failed at its last answer, turning that one comes next, and costs nothing."""
        cost, plan, depth = branch
        if result.count is None and last:
            heapq.heappush(self.queue, (cost, -next(self.order), plan, depth))
        else:
            branches.append((cost + 1, plan, depth))

    def _large(self) -> bool:
        return self.made + len(self.queue) > self.budget.runs

    def _run(self, plan: Plan) -> Result:
        result = self.run_one(plan)
        # A run that was stopped says nothing itself; what it was told to answer is still known.
        answers = {**plan, **{c["name"]: c["options"][c["answer"]] for c in result.choices}}
        self.made += 1
        self.good = self.good or result.count is not None
        if not result.impossible:
            self.found.runs.append((answers, result))
        for choice in result.choices:
            votes = self.liked.setdefault(choice["name"], {})
            answer = choice["options"][choice["answer"]]
            votes.setdefault(answer, 0)
            votes[answer] += 1 if result.count is not None else 0
        return result

    def samples(self, source: random.Random) -> None:
        """Random answers to every question, from those that have led to a count; each run starts from one that did."""
        good = [answers for answers, result in self.found.runs if result.count is not None]
        while good and not self._spent(1.0):
            base = dict(source.choice(good))
            share = source.choice((0.1, 0.3, 0.6))
            for name in list(base):
                votes = [answer for answer, number in self.liked[name].items() if number]
                if source.random() < share and votes:
                    base[name] = source.choice(votes)
            result = self._run(base)
            if result.count is not None:
                good.append(self.found.runs[-1][0])


def _from_both_ends(branches: list[Branch]) -> list[Branch]:
    """What led to a failure was most likely answered last, or else at the very start."""
    ordered: list[Branch] = []
    for number in range((len(branches) + 1) // 2):
        ordered += [branches[-1 - number], branches[number]]
    return ordered[: len(branches)]
