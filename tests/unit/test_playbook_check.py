"""Every mistake a playbook can hold is named at its line and key, all of them at once."""

from pathlib import Path
from typing import Any

import pytest

from ..support.books import Part, book, problems, rule, step


def two_hypotheses() -> list[Part]:
    return [
        {"id": "h", "claim": "C", "refuted_by": "R", "assumptions": [{"id": "a", "text": "A."}]},
        {"id": "g", "claim": "C", "refuted_by": "R", "assumptions": [{"id": "b", "text": "B."}]},
    ]


def test_a_sound_playbook_has_no_problems(tmp_path: Path) -> None:
    control = {"tool": "grep", "args": {"pattern": "y"}, "must": "data.total > 0"}
    content = book(
        step("s1", rule("data.total > 1 and control.data.total > 0", goto="s3"), rule(), control=control),
        step("s2", rule("steps.s1.status == 'ok'", "refutes", assume={"a": "verified"})),
        step("s3", rule(grade="computed", bearing="supports", proves=True, note="${data.size} ${n}"), tool="read_file"),
        parameters={"n": {"default": 3}, "names": {"default": ["a"]}},
        applies_to="n > 2 and suspect.files",
    )
    assert problems(tmp_path, content) == []


CASES: list[tuple[str, Part, list[str]]] = [
    (
        "unknown tool",
        book(step("s1", tool="grepp")),
        ["tool: grepp | steps.0.tool: unknown tool 'grepp'; did you mean 'grep'?"],
    ),
    (
        "unknown argument",
        book(step("s1", args={"pattern": "x", "path": "a"})),
        ["path: a | steps.0.args.path: grep has no argument 'path'; did you mean 'paths'?"],
    ),
    (
        "missing argument",
        book(step("s1", args={"paths": ["a"]})),
        ["args: | steps.0.args: grep needs the argument 'pattern'"],
    ),
    (
        "wrong type",
        book(step("s1", args={"pattern": "x", "max_hits": "many"})),
        [
            (
                "max_hits: many | steps.0.args.max_hits: Input should be a valid integer, unable to parse string as an "
                "integer (got 'many')"
            )
        ],
    ),
    (
        "out of range",
        book(step("s1", args={"pattern": "x", "max_hits": 0})),
        ["max_hits: 0 | steps.0.args.max_hits: Input should be greater than or equal to 1 (got 0)"],
    ),
    (
        "wrong type inside a list",
        book(step("s1", args={"pattern": "x", "paths": ["a", 5]})),
        ["- 5 | steps.0.args.paths.1: Input should be a valid string (got 5)"],
    ),
    (
        "bad template in an argument",
        book(step("s1", args={"pattern": "${nope}"})),
        ["pattern: ${nope} | steps.0.args.pattern: 'nope': unknown name 'nope'; known: steps, suspect"],
    ),
    (
        "an argument may not look at the step's own result",
        book(step("s1", args={"pattern": "${data.total}"})),
        ["pattern: ${data.total} | steps.0.args.pattern: 'data.total': unknown name 'data'; known: steps, suspect"],
    ),
    (
        "slot never closed",
        book(step("s1", question="what ${n")),
        [
            (
                "question: what ${n | steps.0.question: 'what ${n': a '${' is never closed; write '$${' for the "
                "characters themselves"
            )
        ],
    ),
    (
        "unknown hypothesis of a step",
        book(step("s1", hypotheses=["hh"])),
        ["hypotheses: | steps.0.hypotheses: there is no 'hh'; did you mean 'h'?"],
    ),
    (
        "unknown hypothesis of a rule",
        book(step("s1", rule(hypotheses=["hyp"])), hypotheses=[{**two_hypotheses()[0], "id": "hypo"}]),
        ["hypotheses: | steps.0.outcomes.0.hypotheses: there is no 'hyp'; did you mean 'hypo'?"],
    ),
    (
        "no hypothesis at all",
        book(step("s1", rule(hypotheses=[]))),
        ["hypotheses: [] | steps.0.outcomes.0.hypotheses: List should have at least 1 item after validation, not 0"],
    ),
    (
        "unknown assumption",
        book(step("s1", rule(assume={"aa": "verified"}))),
        ["aa: verified | steps.0.outcomes.0.assume.aa: there is no 'aa'; did you mean 'a'?"],
    ),
    (
        "assumption of another hypothesis",
        book(step("s1", rule(assume={"b": "verified"}, hypotheses=["h"])), hypotheses=two_hypotheses()),
        [
            "b: verified | steps.0.outcomes.0.assume.b: belongs to 'g', which this outcome doesn't bear on",
        ],
    ),
    (
        "goto nowhere",
        book(step("s1", rule(goto="s22")), step("s2")),
        [
            "goto: s22 | steps.0.outcomes.0.goto: no later step 's22'; did you mean 's2'?",
            "- id: s2 | steps.1: no step leads to 's2'",
        ],
    ),
    (
        "goto backwards",
        book(step("s1"), step("s2", rule(goto="s1"))),
        [
            (
                "goto: s1 | steps.1.outcomes.0.goto: no later step 's1' (only a later step: a playbook always "
                "comes to its end); known: end"
            )
        ],
    ),
    (
        "goto itself",
        book(step("s1", rule(goto="s1"))),
        [
            (
                "goto: s1 | steps.0.outcomes.0.goto: no later step 's1' (only a later step: a playbook always "
                "comes to its end); known: end"
            )
        ],
    ),
    (
        "unreachable step",
        book(step("s1", rule(goto="s3")), step("s2"), step("s3")),
        ["- id: s2 | steps.1: no step leads to 's2'"],
    ),
    (
        "unreachable rule",
        book(step("s1", rule("True"), rule("data.total > 1"))),
        ["- when: data.total > 1 | steps.0.outcomes.1: never reached: the rule before it always holds"],
    ),
    (
        "result used though its step may have been left out",
        book(
            step("s1", rule("data.total > 1", goto="s3"), rule()),
            step("s2"),
            step("s3", rule("steps.s2.data.total > 1"), rule()),
        ),
        ["- id: s3 | steps.2: uses the result of 's2', but can be reached without it"],
    ),
    (
        "result used in a control though its step may have been left out",
        book(
            step("s1", rule("data.total > 1", goto="s3"), rule()),
            step("s2"),
            step("s3", control={"tool": "grep", "args": {"pattern": "y"}, "must": "steps['s2'].data.total > 1"}),
        ),
        ["- id: s3 | steps.2: uses the result of 's2', but can be reached without it"],
    ),
    (
        "result of a later step",
        book(step("s1", rule("steps.s2.data.total > 1"), rule()), step("s2")),
        [
            "- id: s1 | steps.0: uses the result of 's2', but can be reached without it",
            "- when: steps.s2.data.total > 1 | steps.0.outcomes.0.when: 'steps.s2.data.total > 1': there is no 's2'",
        ],
    ),
    (
        "unknown field",
        book(step("s1", rule("data.totl > 1"))),
        [
            (
                "- when: data.totl > 1 | steps.0.outcomes.0.when: 'data.totl > 1': GrepData has no field 'totl'; "
                "did you mean 'total'?"
            )
        ],
    ),
    (
        "unknown field in a note",
        book(step("s1", rule(note="${first(data.hits).lin}"))),
        [
            (
                "note: ${first(data.hits).lin} | steps.0.outcomes.0.note: 'first(data.hits).lin': Hit has no field "
                "'lin'; did you mean 'line'?"
            )
        ],
    ),
    (
        "control that isn't there",
        book(step("s1", rule("control.data.total > 1"))),
        [
            (
                "- when: control.data.total > 1 | steps.0.outcomes.0.when: 'control.data.total > 1': unknown name "
                "'control'; known: data, status, steps, suspect"
            )
        ],
    ),
    (
        "status that never occurs",
        book(step("s1", rule("status == 'nodata'"))),
        [
            (
                "- when: status == 'nodata' | steps.0.outcomes.0.when: \"status == 'nodata'\": it is never 'nodata'; "
                "did you mean 'no_data'?"
            )
        ],
    ),
    (
        "not an expression",
        book(step("s1", rule("data.total >"))),
        ["- when: data.total > | steps.0.outcomes.0.when: 'data.total >' is not an expression: invalid syntax"],
    ),
    (
        "proof by reading",
        book(step("s1", rule(bearing="supports", proves=True))),
        ["proves: true | steps.0.outcomes.0.proves: reading proves nothing: the grade must be 'computed' or better"],
    ),
    (
        "proof of nothing",
        book(step("s1", rule(bearing="refutes", grade="computed", proves=True))),
        ["proves: true | steps.0.outcomes.0.proves: only an outcome that supports a hypothesis can prove it"],
    ),
    (
        "control with mistakes of its own",
        book(step("s1", control={"tool": "grep", "args": {"patern": "x"}, "must": "data.x"})),
        [
            "args: | steps.0.control.args: grep needs the argument 'pattern'",
            "patern: x | steps.0.control.args.patern: grep has no argument 'patern'; did you mean 'pattern'?",
            "must: data.x | steps.0.control.must: 'data.x': GrepData has no field 'x'; known: control, files, hits",
        ],
    ),
    (
        "control of an unknown tool",
        book(step("s1", control={"tool": "gerp", "must": "true"})),
        ["tool: gerp | steps.0.control.tool: unknown tool 'gerp'; did you mean 'grep'?"],
    ),
    (
        "twice the same step",
        book(step("s1"), step("s1")),
        ["- id: s1 | steps.1.id: the id 's1' stands twice"],
    ),
    (
        "twice the same hypothesis",
        book(hypotheses=[two_hypotheses()[0], {**two_hypotheses()[0], "assumptions": []}]),
        ["- id: h | hypotheses.1.id: the id 'h' stands twice"],
    ),
    (
        "twice the same assumption",
        book(hypotheses=[{**two_hypotheses()[0], "assumptions": [{"id": "a", "text": "A"}, {"id": "a", "text": "A"}]}]),
        ["- id: a | hypotheses.0.assumptions.1.id: the id 'a' stands twice"],
    ),
    (
        "one assumption with two meanings",
        book(hypotheses=[two_hypotheses()[0], {**two_hypotheses()[1], "assumptions": [{"id": "a", "text": "B"}]}]),
        ["- id: a | hypotheses.1.assumptions.0: 'a' has another text in an earlier hypothesis"],
    ),
    (
        "a step called end",
        book(step("end")),
        [
            "- id: end | steps.0.id: 'end' is where every playbook stops; choose another name",
            "- id: end | steps.0: no step leads to 'end'",
        ],
    ),
    (
        "a step called like a keyword",
        book(step("class")),
        ["- id: class | steps.0.id: 'class' can't be a name in conditions; choose another one"],
    ),
    (
        "unknown name in an assumption",
        book(hypotheses=[{**two_hypotheses()[0], "assumptions": [{"id": "a", "text": "${x}"}]}]),
        ["text: ${x} | hypotheses.0.assumptions.0.text: 'x': unknown name 'x'; known: suspect"],
    ),
    (
        "unknown name in a claim",
        book(hypotheses=[{**two_hypotheses()[0], "claim": "${suspect.name}", "undecided": "${x}"}]),
        [
            "claim: ${suspect.name} | hypotheses.0.claim: 'suspect.name': Suspect has no field 'name'",
            "undecided: ${x} | hypotheses.0.undecided: 'x': unknown name 'x'; known: suspect",
        ],
    ),
    (
        "applies_to looks at a result",
        book(applies_to="data.total"),
        ["applies_to: data.total | applies_to: 'data.total': unknown name 'data'; known: suspect"],
    ),
    (
        "schema",
        book(step("s1", rule(bearing="refute", grade="reed", assume={"a": "true"})), extra=1, playbook=2),
        [
            "playbook: 2 | playbook: Input should be 1 (got 2)",
            "extra: 1 | extra: unknown key; known: about, applies_to, hypotheses, name, parameters, playbook, s",
            "bearing: refute | steps.0.outcomes.0.bearing: Input should be 'supports', 'refutes', 'redirects' or",
            "grade: reed | steps.0.outcomes.0.grade: Input should be 'read', 'computed', 'observed', 'toggled' or",
            "a: 'true' | steps.0.outcomes.0.assume.a: Input should be 'open', 'verified' or 'falsified' (got 'true')",
        ],
    ),
    (
        "schema: unknown key in a rule",
        book(step("s1", rule(wen="x"))),
        ["wen: x | steps.0.outcomes.0.wen: unknown key; did you mean 'when'?"],
    ),
    (
        "schema: nothing to do",
        {**book(), "steps": []},
        ["steps: [] | steps: List should have at least 1 item after validation, not 0"],
    ),
]


@pytest.mark.parametrize(("content", "expected"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_problem(tmp_path: Path, content: Part, expected: list[str]) -> None:
    found = problems(tmp_path, content)
    assert len(found) == len(expected), found
    for said, start in zip(found, expected, strict=True):
        assert said.startswith(start), said


@pytest.mark.parametrize(
    "name", ["status", "data", "control", "suspect", "steps", "true", "false", "null", "len", "first", "matches"]
)
def test_reserved_parameter_names(tmp_path: Path, name: str) -> None:
    written = repr(name) if name in ("true", "false", "null") else name
    said = f"parameters.{name}: {name!r} already means something in conditions; choose another name"
    assert problems(tmp_path, book(parameters={name: {"default": "x"}})) == [f"{written}: | {said}"]


@pytest.mark.parametrize("name", ["max-hits", "Upper", "2x", "_x", "class", "a b", "é"])
def test_parameter_names_that_are_no_names(tmp_path: Path, name: str) -> None:
    (said,) = problems(tmp_path, book(parameters={name: {"default": "x"}}))
    assert f"parameters.{name}: {name!r} can't be a name in conditions; use small letters, digits and _" in said


def test_all_problems_at_once_in_file_order(tmp_path: Path) -> None:
    mistakes: list[Any] = [
        step("s1", rule("data.totl", goto="s9"), tool="grep"),
        step("s2", tool="nope"),
        step("s3", args={"patern": "x"}),
    ]
    found = problems(tmp_path, book(*mistakes, parameters={"steps": {}}, name="q"), name="p")
    keys = [said.partition(" | ")[2].partition(": ")[0] for said in found]
    assert keys == [
        "name",
        "parameters.steps",
        "steps.0.outcomes.0.when",
        "steps.0.outcomes.0.goto",
        "steps.1.tool",
        "steps.2.args",
        "steps.2.args.patern",
    ]
