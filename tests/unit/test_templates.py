"""`${…}` in the texts and arguments of a playbook."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sleuth.playbooks.functions import ExpressionError
from sleuth.playbooks.suspect import Suspect
from sleuth.playbooks.templates import expressions, fill, fill_text

SUSPECT = Suspect(id="p1", files=["a.py", "b.py"])
SCOPE = {"suspect": SUSPECT, "n": 3, "flag": True, "gone": None, "none": [], "word": "x}y", "one": 1}


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        ("plain", "plain"),
        ("${n}", 3),
        ("${flag}", True),
        ("${suspect.files}", ["a.py", "b.py"]),
        ("${gone}", None),
        ("${none}", []),
        (" ${n}", " 3"),
        ("${n}${one}", "31"),
        ("${suspect.id}: ${n} of ${n + one}", "p1: 3 of 4"),
        ("in ${suspect.files}.", "in a.py, b.py."),
        ("${'}'}", "}"),
        ('${"a}b"} and ${word}', "a}b and x}y"),
        (r"${'it\'s }'}", "it's }"),
        (r"${matches(r'^x\}{1,2}y$', word)}", True),
        ("$${n}", "${n}"),
        ("a$$b", "a$b"),
        ("^x$", "^x$"),
        ("$n", "$n"),
        ("${ n }", 3),
        ("${[x for x in suspect.files\n if x]}", ["a.py", "b.py"]),
        (["${n}", {"k": "${suspect.id}", "l": 5}], [3, {"k": "p1", "l": 5}]),
        (None, None),
        (2.5, 2.5),
    ],
)
def test_fill(template: Any, expected: Any) -> None:
    assert fill(template, SCOPE) == expected


def test_models_become_plain_values() -> None:
    filled = fill({"a": "${suspect}", "b": "${[suspect]}"}, SCOPE)
    assert json.loads(json.dumps(filled)) == {"a": SUSPECT.model_dump(), "b": [SUSPECT.model_dump()]}


@pytest.mark.parametrize("template", ["x ${gone}", "${gone} x", "(${none})", "${n}${gone}"])
def test_nothing_is_not_put_into_the_middle_of_an_argument(template: str) -> None:
    with pytest.raises(ExpressionError, match="is nothing here"):
        fill(template, SCOPE)


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        ("${n}", "3"),
        ("${gone}", "nothing"),
        ("found ${none} and ${gone}", "found nothing and nothing"),
        ("${suspect.files}", "a.py, b.py"),
        ("${[gone, n]}", "nothing, 3"),
        ("$${n} $$", "${n} $"),
    ],
)
def test_text_for_a_reader(template: str, expected: str) -> None:
    assert fill_text(template, SCOPE) == expected


@pytest.mark.parametrize("template", ["${n", "a ${n b", "${'}", "${it's}", "${n} ${"])
def test_a_slot_that_is_never_closed_is_refused(template: str) -> None:
    with pytest.raises(ExpressionError, match="is never closed"):
        list(expressions(template))


def test_every_expression_is_found() -> None:
    value = {"a": ["${n} and ${one}", 5], "b": {"c": "${word}", "d": "$${not}"}}
    assert [e.text for e in expressions(value)] == ["n", "one", "word"]


def test_an_error_names_the_expression() -> None:
    with pytest.raises(ExpressionError, match=r"'suspect\.files\[7\]': list index out of range"):
        fill("${suspect.files[7]}", SCOPE)


@given(st.text(alphabet="${}'\"ab \\\n", max_size=30))
def test_whatever_the_braces(text: str) -> None:
    try:
        found = [e.text for e in expressions(text)]
        filled = fill_text(text, {"a": "A", "b": "B", "ab": "AB"})
    except ExpressionError:
        return
    if not found:
        assert filled == text.replace("$$", "$")
