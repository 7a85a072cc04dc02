"""Count how often a factor is applied, by running the tree's own code on stand-ins."""

from __future__ import annotations

from typing import Any

from .fail import InsideError
from .power.child import adopting_strays, separately
from .power.explore import Budget, explore
from .power.files import Files
from .power.oracle import StandInError
from .power.report import report
from .power.sinks import Sinks
from .power.trial import Result, Trial

RUN_SECONDS = 5.0


def run(request: dict[str, Any]) -> dict[str, Any]:
    """Run the entry in every world that the facts leave open, within the budget.

    Args:
        request: root, factor, entry {path, symbol}; optionally facts {guard: value}, sinks (rows as in sinks.toml),
            runs, seconds and run_seconds.

    Returns:
        The worlds table: factor, entry, worlds, sites, guards, assumptions, blind, findings; and complete, runs.

    Raises:
        InsideError: the entry isn't in the tree.
    """
    files = Files(request["root"])
    path = files.tree.require(request["entry"]["path"])
    symbol = request["entry"]["symbol"]
    try:
        defined = symbol.partition(".")[0] in files.get(path).defines
    except StandInError as error:
        raise InsideError(str(error)) from None
    if not defined:
        raise InsideError(f"{path} defines no {symbol.partition('.')[0]}")
    sinks = Sinks.load(request.get("sinks", []))
    trial = Trial(files, path, symbol, request["factor"], request.get("facts", {}), sinks)
    seconds = float(request.get("run_seconds", RUN_SECONDS))

    def run_one(plan: dict[str, str]) -> Result:
        # The first run reads and compiles what the later ones find done.
        result = separately(lambda tell: trial.run(plan, tell), seconds if trial.compiled else 4 * seconds)
        trial.warm(result)
        return result

    budget = Budget(int(request.get("runs", Budget.runs)), float(request.get("seconds", Budget.seconds)))
    with adopting_strays():
        return report(trial, explore(run_one, budget))
