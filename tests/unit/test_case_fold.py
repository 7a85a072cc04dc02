"""The case file is a fold over the events: each event's part in it, and what resuming undoes."""

import pytest

from sleuth.agent import events
from sleuth.agent.case import CaseFile
from sleuth.agent.events import CaseClosed, CaseResumed, OriginalsChecked, Trouble, Verdict

from ..support.events import answered, asked, call, case_of, evidence, hypothesis, opened, suspects, weighed
from ..support.golden import events as golden_events

CLOSED = CaseClosed(
    verdicts=[Verdict(suspect="s", verdict="inconclusive", reasons=["r"], evidence=[])], exit_code=3, summary="x"
)


def test_nothing_yet() -> None:
    case = case_of([])
    assert case == CaseFile()
    assert case.pending() is None
    assert case.last_step("s") is None


def test_each_event_has_its_place() -> None:
    made, control = call("k1"), call("k2")
    question, answer = asked("q1", made, control=control), weighed("q1", evidence())
    case = case_of([opened(), suspects("s", "t", examined=["s"]), hypothesis(), question, *answered(made), answer])
    assert case.opened == opened()
    assert [s.id for s in case.suspects] == ["s", "t"]
    assert case.examined == ["s"]
    assert case.order == "as listed; not ranked"
    assert case.hypotheses == {"h@s": hypothesis()}
    assert case.chosen == [question]
    assert case.started == {"k1": made}
    assert case.results["k1"].text == "found"
    assert case.weighed == [answer]
    assert case.evidence == [evidence()]
    assert case.about("h@s") == [evidence()]
    assert case.about("g@s") == []
    assert case.of_suspect("s") == [hypothesis()]
    assert case.of_suspect("t") == []
    assert case.last_step("s") == answer


def test_the_pending_question_is_the_first_without_an_answer() -> None:
    first, second = asked("q1", call("k1")), asked("q2", call("k2"))
    assert case_of([first]).pending() == first
    assert case_of([first, weighed("q1", onward="q2")]).pending() is None
    assert case_of([first, weighed("q1", onward="q2"), second]).pending() == second
    same_step_of_another = asked("q1", call("k1"), suspect="t")
    assert case_of([first, weighed("q1"), same_step_of_another]).pending() == same_step_of_another


def test_assumptions() -> None:
    case = case_of([hypothesis("s", "h", ["a"]), hypothesis("s", "g", ["a"])])
    assert case.assumption("h@s", "a") == "open"
    case.add(weighed("q1", evidence(assume={"a": "verified"}, counts=False)))
    assert case.assumption("h@s", "a") == "open"
    case.add(weighed("q2", evidence(assume={"a": "verified"})))
    assert (case.assumption("h@s", "a"), case.assumption("g@s", "a")) == ("verified", "open")
    case.add(weighed("q3", evidence(assume={"a": "open"})))
    assert case.assumption("h@s", "a") == "verified"
    case.add(weighed("q4", evidence(assume={"a": "falsified"})))
    case.add(weighed("q5", evidence(assume={"a": "verified"})))
    assert case.assumption("h@s", "a") == "falsified"


@pytest.mark.parametrize("what", ["sandbox", "suspects", "budget", "interrupted"])
def test_resuming_undoes_the_end_and_its_reasons_only(what: str) -> None:
    made = call("k1")
    trouble = Trouble.model_validate({"what": what, "text": "t"})
    done = [opened(), suspects("s"), hypothesis(), asked("q1", made), *answered(made), weighed("q1", evidence())]
    case = case_of([*done, trouble, OriginalsChecked(changed=[]), CLOSED])
    assert (case.closed, case.troubles, case.originals_checked) == (CLOSED, [trouble], True)
    case.add(CaseResumed())
    before = case_of(done)
    before.verdicts = CLOSED.verdicts
    assert case == before


def test_every_event_of_a_whole_case_survives_its_json_form() -> None:
    for event in golden_events():
        assert events.ADAPTER.validate_python(event.model_dump(mode="json")) == event


def test_unknown_events_and_fields_are_refused() -> None:
    with pytest.raises(ValueError, match="kind"):
        events.ADAPTER.validate_python({"kind": "case_moved"})
    with pytest.raises(ValueError, match="extra"):
        events.ADAPTER.validate_python({"kind": "case_resumed", "why": "x"})
