"""The investigation as a LangGraph graph: rank → choose → approve → act → weigh → choose … → conclude.

The checkpoint holds the case's id and the name of the open question only. What was done is in the event log, and every
node reads the case file before it acts: a node that runs a second time, after a crash, finds its work done and does
nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypedDict

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph

from ..tools.base import Status
from ..tools.call import Caller, ToolResult
from ..tools.registry import UnknownTool, get_tool
from . import gate
from .approval import Approver
from .budget import Budget
from .case import CaseFile
from .events import (
    AnyEvent,
    Call,
    CallFinished,
    CallStarted,
    StepChosen,
    SuspectsListed,
    Trouble,
)
from .policy import Policy
from .suspects import MakeCall


class Cursor(TypedDict):
    """What LangGraph keeps: which case, and the question that is being worked on as `suspect/step`."""

    case: str
    at: str


Emit = Callable[[AnyEvent], None]
"""Appends an event to the log and folds it into the case file."""


class Ends(Protocol):
    """What happens at the start and at the end of an investigation, outside the loop."""

    def suspects(self, call: MakeCall) -> SuspectsListed:
        """List the patches, in the order that they will be looked at."""
        ...

    def finish(self) -> None:
        """Close the case."""
        ...


class Nodes:
    """The graph's nodes, over one case."""

    def __init__(
        self,
        case: CaseFile,
        emit: Emit,
        policy: Policy,
        caller: Caller,
        approver: Approver,
        budget: Budget,
        ends: Ends,
    ) -> None:
        """Bind the nodes to a case."""
        self.case, self.emit, self.policy, self.caller = case, emit, policy, caller
        self.approver, self.budget, self.ends = approver, budget, ends

    def rank(self, state: Cursor) -> dict[str, Any]:
        """List the suspects and raise the hypotheses."""
        if not self.case.suspects:
            self.emit(self.ends.suspects(self._make_if_allowed))
        for hypothesis in self.policy.hypotheses(self.case):
            if hypothesis.id not in self.case.hypotheses:
                self.emit(hypothesis)
        return {}

    def choose(self, state: Cursor) -> dict[str, Any]:
        """Ask the next question, unless one is open, the budget is spent, or there is none left."""
        if self.case.pending() is None and not self._spent():
            chosen = self.policy.choose(self.case)
            if chosen is not None:
                self.emit(chosen)
        pending = None if self._spent() else self.case.pending()
        return {"at": f"{pending.suspect}/{pending.step}" if pending else ""}

    def _spent(self) -> bool:
        if any(t.what == "budget" for t in self.case.troubles):
            return True
        over = self.budget.spent(len(self.case.results))
        if over:
            self.emit(Trouble(what="budget", text=over))
        return bool(over)

    def approve(self, state: Cursor) -> dict[str, Any]:
        """Have each call allowed or denied before anything of it runs."""
        for call in self._open_calls():
            self._deny(call)
        return {}

    def _deny(self, call: Call) -> None:
        """Record a refused call as one that gave no answer."""
        refusal = self.approver.refusal(call)
        if refusal and call.key not in self.case.results:
            self._finish(call, ToolResult(status=Status.DENIED, text=refusal))

    def _make_if_allowed(self, call: Call) -> ToolResult:
        self._deny(call)
        return self._make(call)

    def act(self, state: Cursor) -> dict[str, Any]:
        """Make the calls that have no result yet."""
        for call in self._open_calls():
            self._make(call)
        return {}

    def _make(self, call: Call) -> ToolResult:
        """Make a call, unless its result is known."""
        if call.key not in self.case.results:
            self.emit(CallStarted(call=call, again=call.key in self.case.started))
            try:
                result = self.caller.call(get_tool(call.tool), call.args)
            except UnknownTool as error:
                result = ToolResult(status=Status.ERROR, text=str(error))
            self._finish(call, result)
        return self.case.results[call.key]

    def _open_calls(self) -> list[Call]:
        chosen = self.case.pending()
        calls = [chosen.call, chosen.control] if chosen else []
        return [call for call in calls if call and call.key not in self.case.results]

    def _finish(self, call: Call, result: ToolResult) -> None:
        self.emit(CallFinished(key=call.key, result=result))

    def weigh(self, state: Cursor) -> dict[str, Any]:
        """Say what the answer means, as far as the gate admits it."""
        chosen: StepChosen | None = self.case.pending()
        if chosen is not None:
            proposed = self.policy.weigh(self.case, chosen)
            admitted = [gate.admit(e, self.case) for e in proposed.evidence]
            self.emit(proposed.model_copy(update={"evidence": admitted}))
        return {}

    def conclude(self, state: Cursor) -> dict[str, Any]:
        """Let the gate give its verdicts."""
        if self.case.closed is None:
            self.ends.finish()
        return {}


def build(
    nodes: Nodes, checkpointer: BaseCheckpointSaver[str] | None
) -> CompiledStateGraph[Cursor, None, Cursor, Cursor]:
    """The compiled graph over `nodes`."""
    graph = StateGraph(Cursor)
    for node in (nodes.rank, nodes.choose, nodes.approve, nodes.act, nodes.weigh, nodes.conclude):
        graph.add_node(node.__name__, node)
    graph.add_edge(START, "rank")
    graph.add_edge("rank", "choose")
    graph.add_conditional_edges(
        "choose", lambda state: "approve" if state["at"] else "conclude", ["approve", "conclude"]
    )
    graph.add_edge("approve", "act")
    graph.add_edge("act", "weigh")
    graph.add_edge("weigh", "choose")
    graph.add_edge("conclude", END)
    return graph.compile(checkpointer=checkpointer)


def run(graph: CompiledStateGraph[Cursor, None, Cursor, Cursor], case: str) -> None:
    """Run the graph from where its checkpoint stands, or from the start, to the end."""
    config: RunnableConfig = {"configurable": {"thread_id": case}, "recursion_limit": 1_000_000}
    graph.invoke(None if _begun(graph, config) else Cursor(case=case, at=""), config, durability="sync")


def _begun(graph: CompiledStateGraph[Cursor, None, Cursor, Cursor], config: RunnableConfig) -> bool:
    """Whether a checkpoint says how to go on; one that makes no sense is dropped, since the log knows all it does."""
    try:
        return bool(graph.get_state(config).next)
    except Exception:  # noqa: BLE001 - whatever is wrong with it, there is one cure
        assert isinstance(graph.checkpointer, BaseCheckpointSaver)
        graph.checkpointer.delete_thread(config["configurable"]["thread_id"])
        return False
