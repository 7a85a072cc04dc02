"""Playbook schema, version 1: a written diagnostic, its steps, and what each outcome means."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

ID = r"^[a-z][a-z0-9_]*$"
"""Ids are used as names in expressions, so they are words."""

END = "end"


class Bearing(StrEnum):
    """What one observation does to a hypothesis."""

    SUPPORTS = "supports"
    REFUTES = "refutes"
    REDIRECTS = "redirects"
    NEUTRAL = "neutral"


class Grade(StrEnum):
    """How strong an observation is, weakest first."""

    READ = "read"
    COMPUTED = "computed"
    OBSERVED = "observed"
    TOGGLED = "toggled"
    RESTORED = "restored"

    @property
    def rank(self) -> int:
        """Position in the order of strength, 0 for `read`."""
        return list(Grade).index(self)


class State(StrEnum):
    """State of an assumption."""

    OPEN = "open"
    VERIFIED = "verified"
    FALSIFIED = "falsified"


class Part(BaseModel):
    """Base of every part of a playbook: unknown keys are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Parameter(Part):
    """A value that whoever runs the playbook may set with `--param`."""

    about: str = ""
    default: str | int | float | bool | list[str] | None = None
    """Its type is what a given value is read as; without a default the parameter must be given."""
    file: bool = False
    """It names a file of the clone, which must be there before anything is asked."""


class Assumption(Part):
    """What a hypothesis's refutation rests on; it starts open."""

    id: str = Field(pattern=ID)
    text: str


class Hypothesis(Part):
    """A claim against one suspect that can be refuted."""

    id: str = Field(pattern=ID)
    claim: str
    refuted_by: str
    """What would show that the claim is wrong, for a reader."""
    assumptions: list[Assumption] = []
    undecided: str = ""
    """What a reader is told when this playbook's steps don't decide it."""


class Control(Part):
    """A call made beside a step's own to show that the instrument works."""

    tool: str
    args: dict[str, Any] = {}
    must: str
    """A condition on the control's `status` and `data`; where it fails, the step's own result is no data."""


class Rule(Part):
    """What it means when a step comes out one way. The first rule whose condition holds is taken."""

    when: str = "true"
    """A condition over `status`, `data`, `control`, `suspect`, `steps` and the parameters by name."""
    bearing: Bearing
    grade: Grade = Grade.READ
    note: str
    hypotheses: list[str] | None = Field(default=None, min_length=1)
    """Which it bears on; the step's own by default."""
    assume: dict[str, State] = {}
    """Assumptions that this outcome settles."""
    proves: bool = False
    """The claim follows by computation, so that it convicts below grade `toggled`."""
    goto: str | None = None
    """The step to go on with, further down, or `end`; the next one by default."""


class Step(Part):
    """One question, the call that answers it, and what the answers mean."""

    id: str = Field(pattern=ID)
    question: str
    hypotheses: list[str] | None = Field(default=None, min_length=1)
    """Which it is about; all by default."""
    tool: str
    args: dict[str, Any] = {}
    control: Control | None = None
    outcomes: list[Rule] = Field(min_length=1)


class Playbook(Part):
    """A written diagnostic. It is worked through once for every suspect it applies to."""

    playbook: Literal[1]
    """The schema's version."""
    name: str = Field(pattern=r"^[a-z][a-z0-9-]*$")
    title: str
    about: str
    applies_to: str = "true"
    """A condition over `suspect` and the parameters: which patches this diagnostic is for."""
    parameters: dict[str, Parameter] = {}
    hypotheses: list[Hypothesis] = Field(min_length=1)
    steps: list[Step] = Field(min_length=1)

    def step(self, ident: str) -> Step:
        """The step called `ident`."""
        return next(step for step in self.steps if step.id == ident)

    def after(self, ident: str) -> str:
        """The id of the step that follows `ident` in the file, or `end`."""
        ids = [step.id for step in self.steps] + [END]
        return ids[ids.index(ident) + 1]
