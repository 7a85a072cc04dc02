"""The playbook language: what it means, what it refuses, and that nothing gets out of it."""

import inspect
import time
from typing import Any, Literal

import pytest
from pydantic import BaseModel

from sleuth.playbooks import evaluate
from sleuth.playbooks.expressions import MAX_DEPTH, MAX_TEXT, Expression, ExpressionError, uses
from sleuth.playbooks.functions import FUNCTIONS
from sleuth.tools.base import Status


class Hit(BaseModel):
    file: str
    line: int
    _secret: str = "not a field"


class Found(BaseModel):
    hits: list[Hit]
    total: int
    by_name: dict[str, Hit]
    best: Hit | None
    kind: Literal["imports", "inherits"]


DATA = Found(
    hits=[Hit(file="a/b.py", line=3), Hit(file="c.py", line=9)],
    total=2,
    by_name={"x": Hit(file="x.py", line=1)},
    best=None,
    kind="imports",
)
SCOPE = {
    "status": "ok",
    "data": DATA,
    "control": None,
    "steps": {"q1": {"status": "ok", "data": DATA}},
    "names": ["b", "a", "b"],
    "text": "a/b.py",
    "empty": [],
}


def value(text: str, **more: Any) -> Any:
    return Expression(text).evaluate({**SCOPE, **more})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1 + 2", 3),
        ("-data.total", -2),
        ("'a' + 'b'", "ab"),
        ("[1] + [2]", [1, 2]),
        ("(1, 2)", [1, 2]),
        ("data.total == 2", True),
        ("1 < data.total <= 2", True),
        ("1 < data.total < 2", False),
        ("data.total > 1 and status", "ok"),
        ("data.total > 5 or 'no'", "no"),
        ("not data.hits", False),
        ("'yes' if data.total else 'no'", "yes"),
        ("'yes' if empty else 'no'", "no"),
        ("'b' in names", True),
        ("'b' not in names", False),
        ("'/b' in text", True),
        ("'x' in data.by_name", True),
        ("data.hits[1].file", "c.py"),
        ("data.by_name.x.line", 1),
        ("data.by_name['x'].line", 1),
        ("steps.q1.data.total", 2),
        ("steps['q1'].status", "ok"),
        ("[h.line for h in data.hits if h.line > 3]", [9]),
        ("[a + b for a in names for b in names if a < b]", ["ab", "ab"]),
        ("any(h.line == 9 for h in data.hits)", True),
        ("all(h.line == 9 for h in data.hits)", False),
        ("all(h.line == 9 for h in empty)", True),
        ("true and not false", True),
        ("null == None", True),
        ("True", True),
    ],
)
def test_value(text: str, expected: object) -> None:
    assert value(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("basename('a/b.py')", "b.py"),
        ("basename('b.py')", "b.py"),
        ("endswith(text, '.py')", True),
        ("startswith(text, 'b')", False),
        ("escape('a.b')", r"a\.b"),
        ("first(names)", "b"),
        ("first(empty)", None),
        ("first(empty, 'x')", "x"),
        ("first(null, 'x')", "x"),
        ("head('a: b', ':')", "a"),
        ("head('a b', ':')", ""),
        ("called('a.b.c')", "c"),
        ("called('a.B.__init__')", "B"),
        ("identifiers('if x.y > len(self.z) and \"quoted\"')", ["x", "y", "z"]),
        ("join(', ', names)", "b, a, b"),
        ("join(', ', [1, null])", "1, nothing"),
        ("len(names)", 3),
        ("len(text)", 6),
        ("list(names)", ["b", "a", "b"]),
        ("lower('ABC')", "abc"),
        ("matches('^a.*py$', text)", True),
        ("matches('z', text)", False),
        (r"matches(r'\bpy\b', text)", True),
        ("max([1, 3, 2])", 3),
        ("min([1, 3, 2])", 1),
        ("max(empty)", None),
        ("sorted(names)", ["a", "b", "b"]),
        ("str(12)", "12"),
        ("sum(h.line for h in data.hits)", 12),
        ("unique(names)", ["b", "a"]),
    ],
)
def test_function(text: str, expected: object) -> None:
    assert value(text) == expected


def test_every_function_has_an_example() -> None:
    marks = test_function.pytestmark  # type: ignore[attr-defined]
    shown = {text.partition("(")[0] for mark in marks for text, _ in mark.args[1]} | {"all", "any"}
    assert shown == set(FUNCTIONS)


NOTHING = [
    *("data.hits", "data.control.total", "data['x']", "data[0]", "data.a.b.c", "-data.x", "data.x + 1", "'a' + data.x"),
    *("[h for h in data.hits]", "all(h for h in data.hits)", "any(h for h in data.hits)", "all(data.x)", "len(data.x)"),
    *("basename(data.x)", "lower(data.x)", "str(data.x)", "join(', ', data.x)", "matches('None', data.x)"),
    *("startswith(data.x, 'N')", "endswith(data.x, 'e')", "escape(data.x)", "first(data.x)", "identifiers(data.x)"),
    *("list(data.x)", "max(data.x)", "min(data.x)", "sorted(data.x)", "sum(data.x)", "unique(data.x)"),
]
FALSE_OF_NOTHING = [
    *("data.x > 0", "data.x < 0", "data.x >= 0", "data.x <= 0", "0 < data.x", "data.x == 0", "len(data.hits) == 0"),
    *("'a' in data.x", "data.x in 'None'", "data.x in [1]", "data.x == 'nothing'"),
]


@pytest.mark.parametrize("text", NOTHING)
def test_of_nothing_comes_nothing(text: str) -> None:
    assert value(text, data=None) is None


@pytest.mark.parametrize("text", FALSE_OF_NOTHING)
def test_a_condition_about_nothing_is_false(text: str) -> None:
    assert value(text, data=None) is False


def test_every_function_but_first_of_nothing_is_nothing() -> None:
    for name in set(FUNCTIONS) - {"first"}:
        count = len(inspect.signature(FUNCTIONS[name]).parameters)
        for place in range(count):
            args = ["'x'"] * count
            args[place] = "null"
            assert value(f"{name}({', '.join(args)})") is None, name


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is not an expression"),
        ("a b", "is not an expression"),
        ("a = 1", "is not an expression"),
        ("'a' * 10**9", "Mult isn't part of the playbook language"),
        ("9 ** 9", "Pow isn't part of the playbook language"),
        ("1 << 9", "LShift isn't part of the playbook language"),
        ("'%9s' % 1", "Mod isn't part of the playbook language"),
        ("f'{a}'", "JoinedStr isn't part of the playbook language"),
        ("{1: 2}", "Dict isn't part of the playbook language"),
        ("{1}", "Set isn't part of the playbook language"),
        ("a[1:2]", "Slice isn't part of the playbook language"),
        ("(a := 1)", "NamedExpr isn't part of the playbook language"),
        ("lambda: 1", "Lambda isn't part of the playbook language"),
        ("a is b", "Is isn't part of the playbook language"),
        ("[*a]", "Starred isn't part of the playbook language"),
        ("~a", "Invert isn't part of the playbook language"),
        ("a @ b", "MatMult isn't part of the playbook language"),
        ("{x for x in a}", "SetComp isn't part of the playbook language"),
        ("{x: x for x in a}", "DictComp isn't part of the playbook language"),
        ("(yield)", "isn't part of the playbook language"),
        ("await a", "isn't part of the playbook language"),
        ("[x async for x in a]", "a loop has one plain variable"),
        ("[x for x, y in a]", "a loop has one plain variable"),
        ("[x for x.y in a]", "a loop has one plain variable"),
        ("[x for len in a]", "a loop's variable can't be called 'len'"),
        ("[x for true in a]", "a loop's variable can't be called 'true'"),
        ("a.__class__", "__class__ is private"),
        ("a._x", "_x is private"),
        ("__builtins__", "__builtins__ is private"),
        ("open('x')", "there is no function 'open'"),
        ("lenn(a)", "there is no function 'lenn'; did you mean 'len'?"),
        ("a.upper()", "there is no function 'a.upper'"),
        ("len(a)(b)", "there is no function 'len(a)'"),
        ("len(items=a)", "len takes no named arguments"),
        ("first(a, default=1)", "first takes no named arguments"),
        ("len()", "len takes (items), not 0 arguments"),
        ("len(a, b)", "len takes (items), not 2 arguments"),
        ("startswith(a)", "startswith takes (text, start), not 1 argument"),
        ("b'x'", "is no text, number, true, false or null"),
        ("...", "is no text, number, true, false or null"),
        ("1j", "is no text, number, true, false or null"),
        ("1e999", "is no text, number, true, false or null"),
        ("9" * 5000, "is not an expression"),
        (r"matches('\d', a)", "invalid escape sequence '\\d'; write r'…' around a regular expression"),
        (r"matches('\bx', a)", "holds a backspace, not a word's edge; write r'…'"),
        ("a\0", "is not an expression"),
        ("-" * 200 + "1", "is nested more than 100 deep"),
        ("a" + ".b" * 200, "is nested more than 100 deep"),
        ("[" * 150 + "]" * 150, "is nested more than 100 deep"),
        ("not " * 2000 + "1", "nested"),
        ("-" * 9000 + "1", "nested"),
        ("x" * (MAX_TEXT + 1), "an expression of 10,001 characters; the most is 10,000"),
    ],
)
def test_refused_before_anything_runs(text: str, said: str) -> None:
    with pytest.raises(ExpressionError) as error:
        Expression(text)
    assert said in str(error.value)


def test_the_deepest_that_is_allowed_can_be_worked_out() -> None:
    assert value("-" * (MAX_DEPTH // 2 - 2) + "1") == 1
    assert value("+".join(["1"] * 90)) == 90


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("nope", "unknown name 'nope'; known: control"),
        ("statsu", "unknown name 'statsu'; did you mean 'status'?"),
        ("data.nope", "Found has no field 'nope'"),
        ("data.hits.file", "list has no field 'file'"),
        ("text.upper", "str has no field 'upper'"),
        ("data.model_fields", "Found has no field 'model_fields'"),
        ("data.hits[5]", "list index out of range"),
        ("data.hits['x']", "list indices must be integers"),
        ("1 + 'a'", "unsupported operand"),
        ("[1] < 2", "'<' not supported"),
        ("-'a'", "bad operand"),
        ("1 in 'a'", "requires string"),
        ("1 in 2", "a list is needed here, not 2 (int)"),
        ("join(', ', text)", "a list is needed here, not a/b.py (text)"),
        ("[x for x in data]", "a list is needed here"),
        ("sum(names)", "unsupported operand"),
        ("matches('(', text)", "missing ), unterminated subpattern"),
        ("unique([[1], [1]])", "unhashable"),
    ],
)
def test_no_value(text: str, said: str) -> None:
    with pytest.raises(ExpressionError) as error:
        value(text)
    assert str(error.value).startswith(repr(text))
    assert said in str(error.value)


@pytest.mark.parametrize(
    "text",
    [
        "len([1 for a in l for b in l for c in l for d in l])",
        "[big + big for a in l for b in l]",
        "[lower(big) for a in l for b in l]",
        "any(big in big + 'x' for a in l for b in l)",
    ],
)
def test_a_bomb_is_stopped(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evaluate, "WORK", 50_000)
    with pytest.raises(ExpressionError, match="far too many steps"):
        value(text, l=list(range(1000)), big="a" * 1_000_000)


def test_the_bound_on_the_work_is_a_matter_of_seconds() -> None:
    start = time.process_time()
    with pytest.raises(ExpressionError, match="far too many steps"):
        value("[1 for a in l for b in l for c in l]", l=list(range(1000)))
    assert time.process_time() - start < 30
    assert value("len([1 for a in l for b in l])", l=list(range(500))) == 250_000


KNOWN = {
    "status": Status,
    "data": Found,
    "steps": {"q1": {"status": Status, "data": Found}},
    "param": Any,
    "control": {"status": Status, "data": Any},
}


@pytest.mark.parametrize(
    ("text", "problems"),
    [
        ("data.total > 1 and status == 'no_data'", []),
        ("any(h.line > param for h in sorted(data.hits))", []),
        ("first(data.hits).file + data.best.file + data.hits[0].file", []),
        ("data.by_name.anything.line", []),
        ("control.data.whatever", []),
        ("param.anything", []),
        ("data.totl", ["Found has no field 'totl'; did you mean 'total'?"]),
        ("steps.q1.data.totl", ["Found has no field 'totl'; did you mean 'total'?"]),
        ("steps['q1'].data['totl']", ["Found has no field 'totl'; did you mean 'total'?"]),
        ("steps.q2.data", ["there is no 'q2' here; known: q1"]),
        ("steps['q2'].data", ["there is no 'q2' here; known: q1"]),
        ("data.hits.line", ["a list has no field 'line': loop over it, or take first(…)"]),
        ("data.total.x", ["int has no field 'x'"]),
        ("status.x", ["Status has no field 'x'"]),
        ("[h.fil for h in data.hits]", ["Hit has no field 'fil'; did you mean 'file'?"]),
        ("first(data.hits).fil", ["Hit has no field 'fil'; did you mean 'file'?"]),
        ("max(unique(data.hits)).fil", ["Hit has no field 'fil'; did you mean 'file'?"]),
        ("data.by_name['k'].fil", ["Hit has no field 'fil'; did you mean 'file'?"]),
        ("data.best.fil", ["Hit has no field 'fil'; did you mean 'file'?"]),
        ("h.line", ["unknown name 'h'; known: control, data, param, status, steps"]),
        ("[data for data in param]", ["the loop's variable 'data' hides another name"]),
        ("status == 'okay'", ["it is never 'okay'; did you mean 'ok'?"]),
        ("'nodata' != status", ["it is never 'nodata'; did you mean 'no_data'?"]),
        ("status in ['ok', 'no-data']", ["it is never 'no-data'; did you mean 'no_data'?"]),
        ("data.kind == 'import'", ["it is never 'import'; did you mean 'imports'?"]),
        ("'import' in [data.kind]", []),
        ("a and b", ["unknown name 'a'; known: control", "unknown name 'b'; known:"]),
        ("len(nope) if nope else [nope]", ["unknown name 'nope'; known:"]),
    ],
)
def test_names_fields_and_words_are_checked(text: str, problems: list[str]) -> None:
    found = Expression(text).check(KNOWN)
    assert len(found) == len(problems), found
    for said, expected in zip(found, problems, strict=True):
        assert said.startswith(f"{text!r}: {expected}"), said


def test_what_is_used() -> None:
    text = "steps.q1.data.total and steps['q2'] and any(h.x for h in steps.q3.data.hits) and param and true"
    assert Expression(text).names == {"steps", "steps.q1", "steps.q2", "steps.q3", "param"}
    assert uses([Expression(text), Expression("steps.q4")], "steps") == {"q1", "q2", "q3", "q4"}
