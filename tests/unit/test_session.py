"""One investigation over real small trees: who is suspected, what is asked, and how it ends."""

import shutil
from pathlib import Path

import pytest

from sleuth.agent.approval import Deny
from sleuth.agent.exitcodes import ExitCode
from sleuth.agent.session import Options
from sleuth.sandbox.clone import tree_digest
from sleuth.sandbox.errors import UsageError

from ..support.books import book, rule, step
from ..support.investigation import (
    PATCH,
    SOURCE,
    Scene,
    case_in,
    change,
    exit_code,
    held,
    kinds,
    lay,
    refuting_book,
    started,
)
from ..support.investigation import verdicts_and_evidence as outcome


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


def test_a_whole_run(scene: Scene) -> None:
    before = tree_digest(scene.tree)
    folder = scene.run()
    case = case_in(folder)
    assert held(case) == {"source": "exonerated"}
    assert exit_code(folder) == ExitCode.CLEAN
    assert kinds(folder) == [
        *("case_opened", "suspects_listed", "hypothesis_opened"),
        *("step_chosen", "call_started", "call_finished", "call_started", "call_finished", "step_weighed"),
        *("step_chosen", "call_started", "call_finished", "step_weighed"),
        *("originals_checked", "case_closed"),
    ]
    assert case.opened is not None
    assert case.opened.originals == {str(scene.tree): before}
    assert tree_digest(scene.tree) == before
    assert case.originals_changed == []
    assert not folder.scratch.exists()
    assert not folder.layers.exists()


def test_two_runs_agree_and_share_no_folder(scene: Scene) -> None:
    first, second = scene.run(), scene.run()
    assert first.path != second.path
    assert outcome(case_in(first)) == outcome(case_in(second))
    assert started(first) == started(second)


def test_the_same_call_is_made_once_in_a_case(scene: Scene) -> None:
    same = {"pattern": "def ", "paths": ["pkg"]}
    scene.playbook = book(
        step("q1", args=same), step("q2", args=same, control={"tool": "grep", "args": same, "must": "true"})
    )
    folder = scene.run()
    assert len(started(folder)) == 1
    assert len(case_in(folder).weighed) == 2


def test_a_finished_case_is_left_as_it_is(scene: Scene) -> None:
    folder = scene.run()
    before = folder.events.read_bytes()
    shutil.rmtree(scene.tree)
    scene.resume()
    assert folder.events.read_bytes() == before


# --- Who is under suspicion


def test_stock_and_patches(scene: Scene) -> None:
    lay(
        scene.folder,
        {"p/one.patch": PATCH, "p/two.diff": PATCH.replace("router", "model").replace("@@ -2,4", "@@ -9,9")},
    )
    scene.description = {
        "name": "fork",
        "stock": "tree",
        "patches": ["p/one.patch", {"path": "p/one.patch", "id": "again"}],
    }
    with pytest.raises(UsageError, match="is already in the tree"):
        scene.run()
    scene.description["patches"] = ["p/one.patch"]
    scene.playbook = book(
        step(
            "q1",
            rule("'SCALE' not in join(' ', data.lines)", note="gone"),
            tool="read_file",
            args={"path": "pkg/router.py", "start": 4},
        ),
        applies_to="'SCALE' in suspect.changed and suspect.files == ['pkg/router.py']",
    )
    case = case_in(scene.run())
    assert [(s.id, s.title) for s in case.suspects] == [("one", "scale later")]
    assert case.suspects[0].changed == "    return weights * SCALE\n    return weights"
    assert case.evidence[0].note == "gone"


def test_several_suspects_are_worked_through_one_by_one(scene: Scene) -> None:
    lay(
        scene.folder,
        {
            "a.patch": PATCH,
            "b.patch": change("pkg/model.py", "@@ -5 +5 @@", "-    return route(x)", "+    return route(x) * 2"),
            "c.patch": change("pkg/__init__.py", "@@ -0,0 +1 @@", "+VERSION = 1"),
        },
    )
    scene.description = {"name": "fork", "stock": "tree", "patches": ["c.patch", "a.patch", "b.patch"]}
    scene.playbook = book(
        step(
            "q1",
            rule("data.total > 0", "supports", grade="computed", proves=True, assume={"a": "verified"}),
            rule("status == 'no_data'", "refutes", assume={"a": "verified"}),
            args={"pattern": "\\* 2", "paths": "${suspect.files}"},
        ),
        applies_to="'return' in suspect.changed",
        hypotheses=[
            {"id": "h", "claim": "${suspect.id} doubles", "refuted_by": "-", "assumptions": [{"id": "a", "text": "A"}]}
        ],
    )
    folder = scene.run()
    case = case_in(folder)
    assert [s.id for s in case.suspects] == ["a", "b", "c"]
    assert case.examined == ["a", "b"]
    assert held(case) == {"a": "exonerated", "b": "convicted", "c": "inconclusive"}
    assert [v.reasons[0] for v in case.verdicts[:2]] == [
        'refuted: "a doubles" (e1 read)',
        "proved: b doubles (e2 computed)",
    ]
    assert exit_code(folder) == ExitCode.GUILTY


def test_tree_and_stock_without_patches(scene: Scene) -> None:
    lay(
        scene.folder / "stock",
        {**SOURCE, "pkg/router.py": SOURCE["pkg/router.py"].replace("2.5", "1.0"), "pkg/old.py": "x = 1\n"},
    )
    lay(scene.tree, {"pkg/new.py": "y = 1\n"})
    scene.description = {"name": "fork", "tree": "tree", "stock": "stock"}
    scene.playbook = book(step("q1", tool="diff", args={"paths": "${suspect.files}"}))
    case = case_in(scene.run())
    assert [s.id for s in case.suspects] == ["pkg.new.py", "pkg.old.py", "pkg.router.py"]
    assert case.suspects[2].changed == "SCALE = 1.0\nSCALE = 2.5"
    assert held(case) == dict.fromkeys(["pkg.new.py", "pkg.old.py", "pkg.router.py"], "inconclusive")


def test_a_tree_that_is_its_stock_has_one_suspect(scene: Scene) -> None:
    lay(scene.folder / "stock", SOURCE)
    scene.description = {"name": "fork", "tree": "tree", "stock": "stock"}
    assert [s.id for s in case_in(scene.run()).suspects] == ["source"]


def test_tree_and_patches_without_stock(scene: Scene) -> None:
    lay(scene.folder, {"p.patch": PATCH})
    lay(scene.tree, {"pkg/router.py": SOURCE["pkg/router.py"].replace(" * SCALE", "")})
    scene.description = {"name": "fork", "tree": "tree", "patches": ["p.patch"]}
    scene.playbook = book(step("q1", rule("status == 'ok'", note="${data.changes[0].before}"), tool="diff", args={}))
    case = case_in(scene.run())
    assert [s.id for s in case.suspects] == ["p"]
    assert "SCALE" in case.evidence[0].note


def test_suspects_that_can_not_be_listed_are_not_nobody(scene: Scene) -> None:
    lay(scene.folder / "stock", {})
    (scene.folder / "stock").mkdir(exist_ok=True)
    scene.description = {"name": "fork", "tree": "tree", "stock": "stock"}
    folder = scene.run(Options(approver=Deny(["diff"])))
    assert exit_code(folder) == ExitCode.FAILED
    (trouble,) = case_in(folder).troubles
    assert (trouble.what, started(folder)) == ("suspects", [])
    assert trouble.text.startswith("the source could not be compared with stock (denied): diff was denied")


def test_a_playbook_that_is_for_none_of_the_patches(scene: Scene) -> None:
    lay(scene.folder, {"p.patch": PATCH})
    scene.description = {"name": "fork", "stock": "tree", "patches": ["p.patch"]}
    scene.playbook = book(applies_to="'nothing of the kind' in suspect.changed")
    folder = scene.run()
    assert (held(case_in(folder)), exit_code(folder)) == ({"p": "inconclusive"}, ExitCode.INCONCLUSIVE)
    assert "step_chosen" not in kinds(folder)


# --- Questions that can't be answered


def test_what_can_not_be_asked_or_weighed_is_said_and_decides_nothing(scene: Scene) -> None:
    scene.playbook = book(
        step("q1", rule(bearing="refutes"), args={"pattern": "x ${suspect.files[3]}"}),
        step("q2", rule("data.hits[7].line > 1", "refutes"), args={"pattern": "def "}),
        step("q3", rule("false", "refutes"), args={"pattern": "def "}),
        step("q4", rule(bearing="refutes"), args={"pattern": "("}),
        step("q5", rule(bearing="refutes"), tool="read_file", args={"path": "pkg/none.py"}),
        step("q6", rule(bearing="refutes"), args={"pattern": "xyzzy"}),
        step("q7", rule(bearing="refutes"), args={"pattern": "hf_abcdefghijklmnopqrstuv"}),
        step(
            "q8", rule(bearing="refutes", note="${data.hits[0].file} ${first(data.hits)}"), args={"pattern": "SCALE ="}
        ),
        hypotheses=[{"id": "h", "claim": "C ${suspect.files[0]}", "refuted_by": "R", "assumptions": []}],
    )
    folder = scene.run()
    case = case_in(folder)
    notes = [(e.bearing.value, e.note, e.why_not) for e in case.evidence]
    slot = "'suspect.files[3]': list index out of range"
    assert notes[0] == ("neutral", f"can't be asked: {slot}", "")
    assert notes[1] == ("neutral", "the rules can't be applied: 'data.hits[7].line > 1': list index out of range", "")
    assert notes[2] == ("neutral", "no rule of this step covers the outcome (ok)", "")
    assert notes[3] == ("refutes", "noted", "the call gave no answer (error)")
    assert notes[4] == ("refutes", "noted", "the call gave no answer (error)")
    assert notes[5][2] == "the control found nothing either, so the instrument isn't shown to work"
    assert notes[6] == ("neutral", "can't be asked: an argument looks like a secret, which can't be recorded", "")
    assert notes[7][2] == ""
    assert notes[7][1].startswith("pkg/router.py file='pkg/router.py' line=1")
    claim = "C ${suspect.files[0]} (a part of this has no value here: 'suspect.files[0]': list index out of range)"
    assert case.hypotheses["h@source"].claim == claim


def test_a_failed_control_shows_nothing_whatever_its_condition_says(scene: Scene) -> None:
    failing = {"tool": "grep", "args": {"pattern": "("}, "must": "status == 'error' or not data.hits"}
    scene.playbook = book(step("q1", rule(bearing="refutes"), args={"pattern": "xyzzy"}, control=failing))
    (found,) = case_in(scene.run()).evidence
    assert (found.control, found.counts) == ("nothing", False)


def test_a_rule_over_an_earlier_step_that_failed_decides_nothing(scene: Scene) -> None:
    scene.playbook = book(
        step("q1", tool="read_file", args={"path": "pkg/none.py"}),
        step("q2", rule("not any('x' in line for line in steps.q1.data.lines)", "refutes"), args={"pattern": "def "}),
        hypotheses=[{"id": "h", "claim": "C", "refuted_by": "R"}],
    )
    case = case_in(scene.run())
    assert case.evidence[1].rests_on == [case.evidence[0].call]
    assert case.evidence[1].why_not == (
        "it rests on an earlier step of which this holds: the call gave no answer (error)"
    )
    assert held(case) == {"source": "inconclusive"}


def test_a_denied_tool_gives_no_answer(scene: Scene) -> None:
    folder = scene.run(Options(approver=Deny(["grep"])))
    case = case_in(folder)
    assert {r.status.value for r in case.results.values()} == {"denied", "ok"}
    assert [c.tool for c in case.started.values()] == ["read_file"]
    assert (held(case), exit_code(folder)) == ({"source": "inconclusive"}, ExitCode.FAILED)


def test_a_parameter_that_names_a_missing_file_is_refused_before_anything_is_asked(scene: Scene) -> None:
    scene.playbook = refuting_book(parameters={"entry": {"default": "pkg/modle.py", "file": True}})
    with pytest.raises(UsageError) as caught:
        scene.run()
    assert str(caught.value) == "--param entry: pkg/modle.py: no such file in the tree; did you mean 'model.py'?"
    assert list((scene.home / "cases").iterdir()) == []
    assert case_in(scene.run(given={"entry": "pkg/model.py"})).closed
