"""Who answers `choose` and `weigh`: the interface that the playbook policy and a model policy share."""

from __future__ import annotations

from typing import Protocol

from .case import CaseFile
from .events import HypothesisOpened, StepChosen, StepWeighed


class Policy(Protocol):
    """Decides what to ask next and proposes what an answer means. The gate decides what that is worth.

    Both methods depend on nothing but the case file, so that a resumed case goes on exactly where it was.
    """

    def hypotheses(self, case: CaseFile) -> list[HypothesisOpened]:
        """What is held against the suspects at the start."""
        ...

    def choose(self, case: CaseFile) -> StepChosen | None:
        """The next question; None when there is nothing left to ask."""
        ...

    def weigh(self, case: CaseFile, chosen: StepChosen) -> StepWeighed:
        """What the answer to `chosen` means; its calls have ended and are in the case file."""
        ...
