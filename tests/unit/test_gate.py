"""The gate: which evidence counts, what it allows to be held of a suspect, and the exit status."""

import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sleuth.agent import gate
from sleuth.agent.case import CaseFile
from sleuth.agent.events import AnyEvent, CallFinished, Evidence, OriginalsChecked, Trouble
from sleuth.agent.exitcodes import ExitCode
from sleuth.agent.verdicts import close
from sleuth.playbooks.schema import Bearing, Grade
from sleuth.tools.call import ToolResult

from ..support.events import answered, call, case_of, evidence, hypothesis, opened, suspects, weighed


def judged(proposed: list[Evidence], status: str = "ok", assumptions: str = "", **more: Any) -> CaseFile:
    """A case of one suspect `s` and one hypothesis `h`, whose call `k1` ended with `status`, after the gate."""
    start: list[AnyEvent] = [opened(), suspects("s"), hypothesis("s", "h", assumptions.split(), **more)]
    case = case_of([*start, *answered(call("k1"), status)])
    for n, item in enumerate(proposed):
        case.add(weighed(f"q{n}", gate.admit(item, case)))
    return case


# --- What counts


@pytest.mark.parametrize(
    ("status", "control", "counts", "why"),
    [
        ("ok", "none", True, ""),
        ("ok", "found", True, ""),
        ("ok", "nothing", False, "the control found nothing either, so the instrument isn't shown to work"),
        ("no_data", "found", True, ""),
        ("no_data", "none", False, "nothing was found, and no control shows that the instrument works"),
        ("no_data", "nothing", False, "the control found nothing either, so the instrument isn't shown to work"),
        ("error", "found", False, "the call gave no answer (error)"),
        ("timeout", "found", False, "the call gave no answer (timeout)"),
        ("denied", "found", False, "the call gave no answer (denied)"),
    ],
)
@pytest.mark.parametrize("bearing", ["supports", "refutes"])
def test_what_counts(status: str, control: str, bearing: str, counts: bool, why: str) -> None:
    (found,) = judged([evidence(control=control, bearing=bearing)], status).evidence
    assert (found.counts, found.why_not) == (counts, why)


def test_a_call_that_was_never_made_does_not_count() -> None:
    (found,) = judged([evidence(made="k9")]).evidence
    assert (found.counts, found.why_not) == (False, "the call was never made")


@pytest.mark.parametrize("bearing", ["redirects", "neutral"])
def test_what_decides_nothing_needs_no_answer(bearing: str) -> None:
    (found,) = judged([evidence(bearing=bearing)], "error").evidence
    assert found.counts


@pytest.mark.parametrize("bearing", ["redirects", "neutral"])
def test_an_assumption_is_settled_only_by_an_answer(bearing: str) -> None:
    case = judged([evidence(bearing=bearing, assume={"a": "verified"})], "no_data", "a")
    assert not case.evidence[0].counts
    assert case.assumption("h@s", "a") == "open"


@pytest.mark.parametrize(
    ("status", "control", "why"),
    [
        ("ok", "none", ""),
        ("no_data", "found", ""),
        ("no_data", "none", "nothing was found, and no control shows that the instrument works"),
        ("ok", "nothing", "the control found nothing either, so the instrument isn't shown to work"),
        ("error", "none", "the call gave no answer (error)"),
        ("denied", "none", "the call gave no answer (denied)"),
    ],
)
def test_evidence_is_no_better_than_the_earlier_step_it_rests_on(status: str, control: str, why: str) -> None:
    case = judged([])
    case.add(CallFinished(key="k0", result=ToolResult(status=status, text="")))
    case.add(weighed("q0", evidence("e1", made="k0", bearing="neutral", control=control)))
    found = gate.admit(evidence("e2", made="k1", rests_on=["k0"]), case)
    assert found.counts is (not why)
    assert found.why_not == (f"it rests on an earlier step of which this holds: {why}" if why else "")


def test_an_earlier_step_that_was_never_asked_is_no_ground() -> None:
    (found,) = judged([evidence(rests_on=[""])]).evidence
    assert found.why_not == "it rests on an earlier step of which this holds: the call was never made"


# --- What is held of a suspect

FOR, AGAINST = {"bearing": "supports"}, {"bearing": "refutes"}
VERDICTS: list[tuple[str, list[dict[str, Any]], str, str, str]] = [
    ("no evidence", [], "", "inconclusive", "not decided: Claim h"),
    ("neutral only", [{"bearing": "neutral"}], "", "inconclusive", "not decided: Claim h"),
    ("redirect only", [{"bearing": "redirects"}], "", "inconclusive", "not decided: Claim h"),
    ("refuted", [AGAINST], "", "exonerated", 'refuted: "Claim h" (e1 read)'),
    ("refuted twice", [AGAINST, AGAINST], "", "exonerated", 'refuted: "Claim h" (e1 read, e2 read)'),
    (
        "refuted, assumption open",
        [AGAINST],
        "a",
        "inconclusive",
        "Claim h: refuted only if Assumption a (which is open)",
    ),
    (
        "refuted, one assumption of two verified",
        [AGAINST | {"assume": {"a": "verified"}}],
        "a b",
        "inconclusive",
        "Claim h: refuted only if Assumption b (which is open)",
    ),
    (
        "refuted, assumption false",
        [AGAINST | {"assume": {"a": "falsified"}}],
        "a",
        "inconclusive",
        "Claim h: refuted only if Assumption a (which is false)",
    ),
    (
        "refuted, assumption verified and later falsified",
        [AGAINST | {"assume": {"a": "verified"}}, {"bearing": "neutral", "assume": {"a": "falsified"}}],
        "a",
        "inconclusive",
        "Claim h: refuted only if Assumption a (which is false)",
    ),
    (
        "refuted, assumption falsified and later verified",
        [AGAINST | {"assume": {"a": "falsified"}}, {"bearing": "neutral", "assume": {"a": "verified"}}],
        "a",
        "inconclusive",
        "Claim h: refuted only if Assumption a (which is false)",
    ),
    (
        "refuted, assumption verified",
        [AGAINST | {"assume": {"a": "verified"}}],
        "a",
        "exonerated",
        'refuted: "Claim h" (e1 read)',
    ),
    (
        "supported by reading",
        [FOR],
        "",
        "suspected",
        "Claim h: speaks for it, but no more than read (e1 read); a conviction needs the change toggled",
    ),
    (
        "supported by the live deployment",
        [FOR, FOR | {"grade": "observed"}],
        "",
        "suspected",
        "Claim h: speaks for it, but no more than observed (e1 read, e2 observed); a conviction needs",
    ),
    (
        "proof by reading is none",
        [FOR | {"proves": True}],
        "",
        "suspected",
        "Claim h: speaks for it, but no more than read (e1 read); a conviction needs the change toggled",
    ),
    (
        "proof by computation",
        [FOR | {"proves": True, "grade": "computed"}],
        "",
        "convicted",
        "proved: Claim h (e1 computed)",
    ),
    (
        "proof by computation under an open assumption",
        [FOR | {"proves": True, "grade": "computed"}],
        "a",
        "suspected",
        "Claim h: proved (e1 computed) only if",
    ),
    ("toggled", [FOR | {"grade": "toggled"}], "", "convicted", "proved: Claim h (e1 toggled)"),
    ("restored", [FOR, FOR | {"grade": "restored"}], "", "convicted", "proved: Claim h (e2 restored)"),
    ("contradiction", [FOR, AGAINST], "", "suspected", "Claim h: the evidence contradicts itself (e1, e2)"),
    (
        "even toggled evidence may be contradicted",
        [FOR | {"grade": "toggled"}, AGAINST],
        "",
        "suspected",
        "Claim h: the evidence contradicts itself (e1, e2)",
    ),
    (
        "a proof that doesn't support proves nothing",
        [{"bearing": "neutral", "proves": True, "grade": "toggled"}],
        "",
        "inconclusive",
        "not decided: Claim h",
    ),
    ("refuted by nothing without a control", [AGAINST | {"made": "k2"}], "", "inconclusive", "not decided: Claim h"),
    ("supported by a failed call", [FOR | {"made": "k3", "grade": "toggled"}], "", "inconclusive", "not decided"),
]


@pytest.mark.parametrize(
    ("items", "assumptions", "verdict", "reason"), [v[1:] for v in VERDICTS], ids=[v[0] for v in VERDICTS]
)
def test_verdict(items: list[dict[str, Any]], assumptions: str, verdict: str, reason: str) -> None:
    case = judged([], "ok", assumptions)
    case.add(CallFinished(key="k2", result=ToolResult(status="no_data", text="")))
    case.add(CallFinished(key="k3", result=ToolResult(status="error", text="")))
    for n, item in enumerate(items, 1):
        case.add(weighed(f"q{n}", gate.admit(evidence(f"e{n}", **item), case)))
    found = gate.verdict(case, "s")
    assert found.verdict == verdict
    assert len(found.reasons) == 1
    assert found.reasons[0].startswith(reason)


def test_the_reader_is_told_why_it_is_undecided() -> None:
    case = judged([evidence(bearing="neutral")], undecided="Count them.")
    assert gate.verdict(case, "s").reasons == ["not decided: Claim h. Count them."]


@pytest.mark.parametrize(
    ("status", "onward", "why"),
    [
        ("error", "end", "a call gave no answer (error)."),
        ("ok", "q2", "Only 1 of its questions were asked."),
        ("denied", "q2", "Only 1 of its questions were asked; a call gave no answer (denied)."),
    ],
)
def test_the_reader_is_told_that_a_question_was_left_open(status: str, onward: str, why: str) -> None:
    start: list[AnyEvent] = [opened(), suspects("s"), hypothesis("s", "h", undecided="Count them.")]
    case = case_of([*start, *answered(call("k1"), status)])
    case.add(weighed("q1", evidence(bearing="neutral"), onward=onward))
    assert gate.verdict(case, "s").reasons == [f"not decided: Claim h. {why}"]


def test_nothing_asked_is_nothing_found() -> None:
    assert gate.verdict(judged([]), "s").reasons == ["not decided: Claim h. None of its questions was asked."]


def test_every_hypothesis_must_be_refuted() -> None:
    start = [opened(), suspects("s"), hypothesis("s", "h"), hypothesis("s", "g"), *answered(call("k1"))]
    one = case_of([*start, weighed("q", evidence("e1", "h@s"))])
    assert gate.verdict(one, "s").verdict == "inconclusive"
    both = case_of([*start, weighed("q", evidence("e1", "h@s"), evidence("e2", "g@s"))])
    assert gate.verdict(both, "s").verdict == "exonerated"
    assert gate.verdict(both, "s").evidence == ["e1", "e2"]


def test_one_suspects_evidence_says_nothing_of_another() -> None:
    start = [opened(), suspects("s", "t"), hypothesis("s"), hypothesis("t"), *answered(call("k1"))]
    case = case_of([*start, weighed("q", evidence("e1", "h@s", bearing="supports", grade="toggled"))])
    assert [gate.verdict(case, s).verdict for s in ("s", "t")] == ["convicted", "inconclusive"]
    other = case_of([*start, weighed("q", evidence("e1", "h@s"))])
    assert [gate.verdict(other, s).verdict for s in ("s", "t")] == ["exonerated", "inconclusive"]


def test_a_suspect_that_was_not_examined_is_not_cleared() -> None:
    case = case_of([opened(), suspects("s", "t", examined=["s"]), hypothesis("s"), *answered(call("k1"))])
    case.add(weighed("q", evidence()))
    closed = close(case)
    assert [(v.suspect, v.verdict) for v in closed.verdicts] == [("s", "exonerated"), ("t", "inconclusive")]
    assert closed.verdicts[1].reasons == ["this playbook isn't for this patch: nothing was asked about it"]
    assert closed.exit_code == ExitCode.CLEAN
    assert closed.summary == "exonerated: s; not examined: t"


def test_the_summary_says_what_went_wrong() -> None:
    case = case_of([opened(), Trouble(what="sandbox", text="bwrap is gone")])
    assert close(case).summary == "no suspects; bwrap is gone"


# --- Never stronger

STRENGTH = {"inconclusive": 0, "suspected": 1, "exonerated": 1, "convicted": 2}
CALLS = {
    "k1": ("ok", "none"),
    "k2": ("no_data", "found"),
    "k3": ("error", "none"),
    "k4": ("no_data", "none"),
    "k5": ("ok", "nothing"),
}
"""Each call's status, and what its control showed."""
ITEMS = st.builds(
    evidence,
    ident=st.just("e"),
    about=st.sampled_from(["h@s", "g@s"]),
    made=st.sampled_from([*CALLS, "k9"]),
    bearing=st.sampled_from(Bearing),
    grade=st.sampled_from(Grade),
    proves=st.booleans(),
    assume=st.dictionaries(st.just("a"), st.sampled_from(["verified", "falsified"])),
    rests_on=st.lists(st.sampled_from(["", *CALLS]), max_size=2),
)


def case_with(items: list[Evidence]) -> CaseFile:
    start: list[AnyEvent] = [opened(), suspects("s"), hypothesis("s", "h", ["a"]), hypothesis("s", "g")]
    calls = itertools.chain.from_iterable(answered(call(key), status) for key, (status, _) in CALLS.items())
    case = case_of([*start, *calls])
    for n, item in enumerate(items):
        _, control = CALLS.get(item.call, ("", "none"))
        item = item.model_copy(update={"control": control})
        case.add(weighed(f"q{n}", gate.admit(item, case)))
    return case


@given(st.lists(ITEMS, max_size=5), ITEMS, st.integers(0, 5))
def test_what_does_not_count_changes_no_verdict(items: list[Evidence], extra: Evidence, place: int) -> None:
    if any(extra.call in item.rests_on for item in items):
        return  # what the control of its call showed is news, whatever the evidence itself is worth
    before = gate.verdict(case_with(items), "s")
    changed = case_with([*items[:place], extra, *items[place:]])
    if changed.evidence[min(place, len(items))].counts:
        return
    after = gate.verdict(changed, "s")
    assert STRENGTH[after.verdict] <= STRENGTH[before.verdict]
    assert before.verdict == after.verdict


@given(st.lists(ITEMS, max_size=6))
def test_conviction_and_acquittal_have_their_grounds(items: list[Evidence]) -> None:
    case = case_with(items)
    held = gate.verdict(case, "s").verdict
    counted = [e for e in case.evidence if e.counts]
    if held == "convicted":
        assert any(e.bearing == "supports" and (e.grade.rank >= 3 or (e.proves and e.grade.rank >= 1)) for e in counted)
    if held == "exonerated":
        assert {e.hypothesis for e in counted if e.bearing == "refutes"} == {"h@s", "g@s"}
        assert not any(e.bearing == "supports" for e in counted)
        assert case.assumption("h@s", "a") == "verified"


# --- Exit status


def ended(*kinds: str, trouble: str = "", changed: bool = False, failed: str = "", examined: bool = True) -> ExitCode:
    """The exit status of a case with one suspect a kind."""
    names = [f"s{n}" for n in range(len(kinds))]
    case = case_of([opened(), suspects(*names, examined=None if examined else []), *answered(call("k1"))])
    how = {
        "exonerated": {"bearing": "refutes"},
        "convicted": {"bearing": "supports", "grade": "toggled"},
        "suspected": {"bearing": "supports"},
        "inconclusive": {"bearing": "neutral"},
    }
    for name, kind in zip(names, kinds, strict=True):
        case.add(hypothesis(name))
        case.add(weighed("q", evidence(about=f"h@{name}", **how[kind]), suspect=name))
    if failed:
        case.add(CallFinished(key="k7", result=ToolResult(status=failed, text="")))
    if changed:
        case.add(OriginalsChecked(changed=["/trees/stock"]))
    if trouble:
        case.add(Trouble.model_validate({"what": trouble, "text": "t"}))
    verdicts = [gate.verdict(case, name) for name in names]
    assert [v.verdict for v in verdicts] == list(kinds)
    return gate.exit_code(case, verdicts)


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (ended("exonerated"), 0),
        (ended("exonerated", "exonerated"), 0),
        (ended("exonerated", failed="error"), 0),
        (ended("convicted"), 1),
        (ended("exonerated", "inconclusive", "convicted"), 1),
        (ended("convicted", trouble="budget"), 1),
        (ended("convicted", failed="error"), 1),
        (ended("suspected"), 3),
        (ended("inconclusive"), 3),
        (ended("exonerated", "inconclusive"), 3),
        (ended("exonerated", "suspected"), 3),
        (ended("inconclusive", failed="denied"), 4),
        (ended("exonerated", examined=False), 3),
        (ended(), 3),
        (ended("inconclusive", failed="error"), 4),
        (ended("inconclusive", failed="timeout"), 4),
        (ended("exonerated", trouble="sandbox"), 4),
        (ended("convicted", trouble="sandbox"), 4),
        (ended("exonerated", trouble="suspects"), 4),
        (ended("convicted", changed=True), 4),
        (ended("exonerated", changed=True, trouble="budget"), 4),
        (ended("exonerated", trouble="budget"), 5),
        (ended("inconclusive", trouble="budget", failed="error"), 5),
    ],
)
def test_exit_status(code: ExitCode, expected: int) -> None:
    assert code == expected
