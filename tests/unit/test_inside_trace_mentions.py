"""What the trace says about one mention: kind, detail, guards, alias, scope."""

import textwrap
from pathlib import Path
from typing import Any

import pytest

from sleuth.tools.inside import trace


def mentions(root: Path, source: str, symbol: str = "s") -> list[dict[str, Any]]:
    (root / "m.py").write_text(textwrap.dedent(source))
    found: list[dict[str, Any]] = trace.run({"root": str(root), "symbol": symbol, "entry": "m.py"})["occurrences"]
    return found


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("x *= self.s", [("multiply", "in place: x *= self.s")]),
        ("x /= self.s", [("divide", "in place: x /= self.s")]),
        ("y = x * self.s", [("multiply", "x * self.s")]),
        ("y = x @ self.s", [("multiply", "x @ self.s")]),
        ("y = x * float(self.s)", [("multiply", "x * float(self.s)")]),
        ("y = x * self.s.to(x.dtype)[:, None]", [("multiply", "x * self.s.to(x.dtype)[:, None]")]),
        ("y = x * (1 + self.s)", [("multiply", "x * (1 + self.s)")]),
        ("y = (x + self.s) * x", [("read", "assigned to y")]),
        ("y = x * (self.s if x else 1)", [("multiply", "x * (self.s if x else 1)")]),
        ("y = 1.0 / self.s", [("divide", "divided by it: 1.0 / self.s")]),
        ("y = self.s / x", [("divide", "it is divided: self.s / x")]),
        ("x.mul_(self.s)", [("multiply", "x.mul_(self.s)")]),
        ("y = torch.mul(x, self.s)", [("multiply", "torch.mul(x, self.s)")]),
        ("y = self.s.mul(x)", [("multiply", "self.s.mul(x)")]),
        ("x.div_(self.s)", [("divide", "divided by it: x.div_(self.s)")]),
        ("x.add_(y, alpha=self.s)", [("multiply", "alpha= of x.add_(y, alpha=self.s)")]),
        ("kernel(x, self.s)", [("passed", "kernel(…)")]),
        ("kernel(x, scale=self.s)", [("passed", "kernel(scale=…)")]),
        ("kernel(x, s=self.s)", [("keyword_argument", "kernel(s=self.s)")]),
        ("assert not self.s, 'no'", [("assertion", "not self.s, 'no'")]),
        ("while self.s > 1: pass", [("condition", "self.s > 1")]),
        ("y = 1 if self.s else 2", [("condition", "self.s")]),
        ("y = [i for i in x if i < self.s]", [("condition", "i < self.s")]),
        ("y = x and not self.s", [("condition", "x and (not self.s)")]),
        ("return self.s", [("read", "returned")]),
        ("self.s()", [("called", "self.s()")]),
        ("self.s = 2", [("attribute_assignment", "= 2")]),
        ("self.s: float = 2", [("attribute_assignment", "float = 2")]),
        ("s = 2", [("assignment", "= 2")]),
        ("(s := x)", [("assignment", ":= x")]),
        ("for s in x: pass", [("assignment", "each of x")]),
        ("del self.s", [("attribute_assignment", "deleted")]),
        (
            "self.s *= 2",
            [
                ("attribute_assignment", "self.s *= 2"),
                ("multiply", "the symbol itself is changed: self.s *= 2"),
            ],
        ),
        ("from a.b import s", [("import", "from a.b import s")]),
        ("import a.s as t", [("import", "import a.s as t")]),
        ("y = getattr(x, 's', 1)", [("read", "assigned to y"), ("string", "reads: getattr(x, 's', 1)")]),
        ("y = x * getattr(x, 's')", [("multiply", "x * getattr(x, 's')"), ("string", "reads: getattr(x, 's')")]),
        ("setattr(x, 's', 3)", [("string", "sets: setattr(x, 's', 3)")]),
        ("hasattr(x, 's')", [("string", "reads: hasattr(x, 's')")]),
        ("y = {'s': 4}", [("string", "sets: dict key, value 4")]),
        ("x['s'] = 5", [("string", "sets: x['s']")]),
        ("y = x['s']", [("string", "reads: x['s']")]),
        ("y = f'{self.s}'", [("read", "assigned to y")]),
        ("'s and more'", []),
        ("y = x.ss * z.s_", []),
    ],
)
def test_kinds(tmp_path: Path, line: str, expected: list[tuple[str, str]]) -> None:
    found = mentions(tmp_path, f"def f(self, x, y):\n    {line}\n")
    assert [(m["kind"], m["detail"]) for m in found] == expected
    assert {(m["line"], m["scope"]) for m in found} <= {(2, "f")}


def test_definitions_parameters_and_fields(tmp_path: Path) -> None:
    source = """\
        @dataclass
        class Config:
            s: float = 1.5
            t: int


        class Layer:
            @property
            def s(self):
                return 1


        def f(a, s, *, t=2):
            pass


        def g(a, *, s=None):
            return lambda s=3: s
        """
    assert [(m["line"], m["kind"], m["scope"], m["detail"]) for m in mentions(tmp_path, source)] == [
        (3, "assignment", "Config", "field: float = 1.5"),
        (9, "definition", "Layer", "function @property"),
        (13, "parameter", "f", "of f, no default"),
        (17, "parameter", "g", "of g, default None"),
        (18, "parameter", "g", "of lambda, default 3"),
        (18, "read", "g", ""),
    ]
    assert mentions(tmp_path, source, "t")[0]["detail"] == "field: int, no default"


def test_what_sets_and_what_does_not(tmp_path: Path) -> None:
    source = """\
        def f(s):
            self.s = s
            g(s=1)
            setattr(self, "s", 2)
            return x * self.s
        """
    found = mentions(tmp_path, source)
    assert [m["line"] for m in found if m["sets"]] == [2, 3, 4]


@pytest.mark.parametrize(
    ("body", "guards"),
    [
        ("if a:\n        x *= s", ["a"]),
        ("if a:\n        pass\n    elif b > 1:\n        pass\n    else:\n        x *= s", ["not a", "not b > 1"]),
        ("if not a:\n        pass\n    else:\n        x *= s", ["a"]),
        ("if a is None:\n        pass\n    else:\n        x *= s", ["a is not None"]),
        ("if a:\n        return x\n    x *= s", ["not a"]),
        ("if a:\n        pass\n    else:\n        raise E\n    x *= s", ["a"]),
        ("if a:\n        return 1\n    else:\n        return 2\n    x *= s", []),
        ("for i in y:\n        if i == 2:\n            continue\n        x *= s", ["i != 2"]),
        ("if a:\n        pass\n    x *= s", []),
        ("while a:\n        x *= s", ["a"]),
        ("if a and b or c:\n        if d:\n            x *= s", ["a and b or c", "d"]),
        ("y = x * s if a else x", ["a"]),
        ("y = x if a else x * s", ["not a"]),
        ("y = a and b and x * s", ["a", "b"]),
        ("y = a or x * s", ["not a"]),
        ("y = [i * s for i in x if i]", ["i"]),
        ("try:\n        pass\n    except KeyError:\n        x *= s", ["except KeyError"]),
        ("try:\n        if a:\n            return\n    finally:\n        x *= s", []),
        ("match a:\n        case 1 if b:\n            x *= s", ["match a case 1", "b"]),
        ("with a:\n        if b:\n            x *= s", ["b"]),
        ("if (t := a()) is not None:\n        x *= s", ["(t := a()) is not None"]),
    ],
)
def test_guards(tmp_path: Path, body: str, guards: list[str]) -> None:
    found = mentions(tmp_path, f"if outside:\n  def f(x, y, a, b, c, d):\n    {body}\n")
    assert [(m["kind"], m["guards"]) for m in found] == [("multiply", guards)]


def test_guards_are_quoted_whole(tmp_path: Path) -> None:
    test = " and ".join(f"condition_number_{n}" for n in range(30))
    assert mentions(tmp_path, f"def f(x, s):\n    if {test}:\n        x *= s\n")[1]["guards"] == [test]


def test_conditions_beyond_fifty_are_counted(tmp_path: Path) -> None:
    body = "".join(f"    if a{n}:\n        return\n" for n in range(60))
    (one,) = [m for m in mentions(tmp_path, f"def f(x, s):\n{body}    x *= s\n") if m["kind"] == "multiply"]
    assert one["guards"][:2] == ["… and 10 conditions before these", "not a10"]
    assert (len(one["guards"]), one["guards"][-1]) == (51, "not a59")


def test_a_local_name_carries_the_value_on(tmp_path: Path) -> None:
    source = """\
        def f(self, x):
            x *= scale
            scale = self.s if self.s is not None else 1.0
            again = float(scale)
            x *= again
            kernel(scale)
            return scale


        def g(x, scale):
            x *= scale
        """
    found = mentions(tmp_path, source)
    assert [(m["line"], m["kind"], m["alias"]) for m in found] == [
        (3, "read", ""),
        (3, "condition", ""),
        (5, "multiply", "again"),
        (6, "passed", "scale"),
    ]


def test_a_chain_over_several_lines_is_where_the_name_stands(tmp_path: Path) -> None:
    source = """\
        y = (
            x
            * self
            .experts
            .s
        )
        """
    (one,) = mentions(tmp_path, source)
    assert (one["line"], one["text"], one["detail"]) == (5, ".s", "x * self.experts.s")


def test_f_strings_of_several_lines(tmp_path: Path) -> None:
    found = mentions(tmp_path, 'def f(s):\n    return f"""\n    a\n    {x * s}\n    """\n')
    assert [(m["kind"], m["detail"]) for m in found] == [("parameter", "of f, no default"), ("multiply", "x * s")]
