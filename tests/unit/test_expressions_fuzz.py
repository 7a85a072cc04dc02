"""Whatever is written as an expression: only its own error gets out, and nothing of Python can be reached."""

import ast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sleuth.playbooks import expressions
from sleuth.playbooks.expressions import Expression, ExpressionError
from sleuth.playbooks.functions import FUNCTIONS

from .test_expressions import KNOWN, SCOPE, Found, Hit

WORDS = [
    *("data", "hits", "total", "x", "status", "names", "text", "__class__", "_secret", "mro", "len", "first", "str"),
    *("join", "matches", "for", "in", "if", "else", "and", "or", "not", "(", ")", "[", "]", ".", ",", "+", "-", "*"),
    *("**", "==", "<", "'a'", "'x'", "1", "0", "null", "true", ":", "=", "lambda", "{", "}", "@", "async", "\\", "\0"),
]
PIECES = st.lists(st.sampled_from(WORDS), max_size=12).map(" ".join)


def atoms() -> st.SearchStrategy[str]:
    return st.sampled_from(
        ["data", "data.hits", "data.total", "names", "text", "1", "-1", "'b'", "null", "true", "empty"]
    )


def grown(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    binary = st.sampled_from(["+", "==", "<", ">=", "in", "not in", "and", "or"])
    return st.one_of(
        st.tuples(inner, binary, inner).map(lambda t: f"({t[0]}) {t[1]} ({t[2]})"),
        inner.map(lambda e: f"not ({e})"),
        inner.map(lambda e: f"({e}).file"),
        inner.map(lambda e: f"({e})[0]"),
        inner.map(lambda e: f"[h for h in ({e})]"),
        st.tuples(st.sampled_from(sorted(FUNCTIONS)), inner).map(lambda t: f"{t[0]}({t[1]})"),
        st.tuples(st.sampled_from(["join", "matches", "startswith", "first"]), inner, inner).map(
            lambda t: f"{t[0]}({t[1]}, {t[2]})"
        ),
        st.tuples(inner, inner, inner).map(lambda t: f"({t[0]}) if ({t[1]}) else ({t[2]})"),
    )


@settings(max_examples=600, deadline=None)
@given(st.one_of(PIECES, st.text(max_size=40), st.recursive(atoms(), grown, max_leaves=6)))
def test_only_its_own_error_gets_out(text: str) -> None:
    try:
        expression = Expression(text)
        expression.check(KNOWN)
        assert isinstance(expression.names, frozenset)
        found = expression.evaluate(SCOPE)
    except ExpressionError:
        return
    assert plain_value(found), (text, found)


def plain_value(found: object) -> bool:
    """Nothing but JSON-like values and the models of the scope ever comes out: no function, no class, no method."""
    if isinstance(found, list | tuple):
        return all(plain_value(item) for item in found)
    if isinstance(found, dict):
        return all(plain_value(item) for item in found.values())
    return found is None or isinstance(found, str | int | float | Found | Hit)


@given(
    st.sampled_from(["data", "text", "names", "data.hits[0]", "steps", "null"]), st.sampled_from(dir(object) + dir(str))
)
def test_no_attribute_of_python_can_be_reached(base: str, attribute: str) -> None:
    try:
        found = Expression(f"({base}).{attribute}").evaluate(SCOPE)
    except ExpressionError:
        return
    assert found is None


def test_admitted_syntax_is_a_closed_list() -> None:
    """Whatever a new Python adds to its grammar is refused until someone lists it."""
    kinds = {kind for kind in vars(ast).values() if isinstance(kind, type) and issubclass(kind, ast.expr)}
    allowed = {kind.__name__ for kind in kinds & set(expressions._ALLOWED)}
    known = "Attribute BinOp BoolOp Call Compare Constant GeneratorExp IfExp List ListComp Name Subscript Tuple UnaryOp"
    assert allowed == set(known.split())


class Trap:
    """Something of Python's that must never be touched."""

    def __getattribute__(self, name: str) -> object:
        if name == "__class__":
            return object.__getattribute__(self, name)
        raise AssertionError(f"{name} was read")


@pytest.mark.parametrize("text", ["trap.x", "trap['x']", "trap.file.y", "[t.x for t in [trap]]", "first([trap]).real"])
def test_only_models_and_mappings_have_fields(text: str) -> None:
    with pytest.raises(ExpressionError):
        Expression(text).evaluate({"trap": Trap()})
