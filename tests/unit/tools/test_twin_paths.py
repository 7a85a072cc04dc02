"""Twins: which functions are found to do the same job, and what of their differences is told."""

from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from sleuth.tools.inside import twins

from ...support.trees import Bench, write

Row = tuple[str, str, str, str]


def find(folder: Path, source: str, *words: str, **more: Any) -> dict[str, Any]:
    """The script's reply about one file."""
    write(folder / "tree", {"m.py": dedent(source)})
    return twins.run({"root": str(folder / "tree"), "stock": "", "paths": ["m.py"], "words": list(words), **more})


def groups(reply: dict[str, Any]) -> list[list[str]]:
    return [[member["name"] for member in group["members"]] for group in reply["groups"]]


def rows(reply: dict[str, Any]) -> set[Row]:
    return {(d["kind"], d["member"], d["subject"], ", ".join(d["guards"])) for d in reply["differences"]}


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        pytest.param("def f_cuda(x): ...\ndef f_cpu(x): ...\ndef g_cpu(x): ...", [["f_cuda", "f_cpu"]], id="platforms"),
        pytest.param(
            "def f(x): return f_cpu(x)\ndef f_cuda(x): ...\ndef f_cpu(x): ...",
            [["f_cuda", "f_cpu"]],
            id="a choice is none",
        ),
        pytest.param("def f(x): return x\ndef f_cuda(x): return x", [["f", "f_cuda"]], id="the plain one may be"),
        pytest.param("def __enter__(self): ...\ndef cpu(): ...\ndef cuda(): ...", [], id="no word for the job"),
        pytest.param(
            "def run(x, a):\n    if a:\n        return one(x)\n    if x:\n        return two(x)\n    return three(x)\n"
            "def one(x): ...\ndef two(x): ...\ndef three(x): ...",
            [["one", "two", "three"]],
            id="early returns",
        ),
        pytest.param(
            "def run(x, a):\n    f = one if a else two\n    return f(x)\ndef one(x): ...\ndef two(x): ...",
            [["one", "two"]],
            id="a ternary",
        ),
        pytest.param(
            "def run(x, a):\n    if a:\n        y = one(x)\n    else:\n        y = one(x)\n    return two(y)\n"
            "def one(x): ...\ndef two(x): ...",
            [],
            id="one after the other",
        ),
        pytest.param(
            "class A(Base):\n    def go(self): ...\nclass B(Base):\n    def go(self): ...\n"
            "class C(Module):\n    def go(self): ...",
            [["A.go", "B.go"]],
            id="sibling classes",
        ),
        pytest.param(
            "class A:\n    def forward(self, x): return x\n    def op_a(self, state): state.a = 1\n"
            "    def op_b(self, state): state.b = state.pop('a')\n    def op_c(self, state): return state.b",
            [["A.forward", "A.op_*"]],
            id="steps",
        ),
    ],
)
def test_who_is_a_twin_of_whom(tmp_path: Path, source: str, expected: list[list[str]]) -> None:
    assert groups(find(tmp_path, source)) == expected


EPILOGUE = """\
    from flags import _is_cuda, reduce_all

    def _end(y, factor, done):
        if not done:
            y *= factor
        return y

    class Moe:
        def f_normal(self, y, shared):
            {normal}
            return y

        def f_deepep(self, y, shared):
            {deepep}
            return y
"""


def compare(folder: Path, normal: str, deepep: str) -> set[Row]:
    pad = "\n" + " " * 12
    source = EPILOGUE.format(normal=normal.replace("\n", pad), deepep=deepep.replace("\n", pad))
    return rows(find(folder, source))


GUARDED = "if not self.fused:\n    y *= self.scale"


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(GUARDED, id="the same"),
        pytest.param("if self.fused:\n    return y\ny *= self.scale", id="leaving early"),
        pytest.param("y = y if self.fused else y * self.scale", id="a ternary"),
        pytest.param("skip = self.fused\nif not skip:\n    y *= self.scale", id="a local"),
        pytest.param("assert not self.fused\ny *= self.scale", id="refused"),
        pytest.param("y = _end(y, self.scale, self.fused)", id="a helper"),
        pytest.param("return self.f_normal(y, shared)", id="the other itself"),
        pytest.param(
            "if shared is None and y.shape[0] > 0 and not self.fused:\n    y *= self.scale", id="data is no setting"
        ),
        pytest.param("s = self.scale\nif not self.fused:\n    y.mul_(s)", id="an alias"),
    ],
)
def test_the_same_in_other_words_is_no_difference(tmp_path: Path, other: str) -> None:
    assert {row for row in compare(tmp_path, GUARDED, other) if row[2] == "scale" and row[0] != "computes"} == set()


@pytest.mark.parametrize(
    ("other", "expected"),
    [
        pytest.param("y *= self.scale", ("guard_missing", "Moe.f_deepep", "scale", "self.fused"), id="no guard"),
        pytest.param(
            "if _is_cuda:\n    y *= self.scale",
            ("guard_missing", "Moe.f_deepep", "scale", "self.fused"),
            id="another guard",
        ),
        pytest.param(
            "if self.fused:\n    y *= self.scale",
            ("guard_opposite", "Moe.f_normal", "scale", "self.fused"),
            id="reversed",
        ),
        pytest.param("y /= self.scale", ("not_done", "Moe.f_deepep", "scale", ""), id="the reciprocal"),
        pytest.param("y = y + 1", ("not_done", "Moe.f_deepep", "scale", ""), id="not at all"),
        pytest.param(
            GUARDED + "\ny = reduce_all(y)\ny = all_reduce(y)",
            ("not_done", "Moe.f_normal", "all_reduce", ""),
            id="a reduction",
        ),
    ],
)
def test_what_differs(tmp_path: Path, other: str, expected: Row) -> None:
    assert expected in compare(tmp_path, GUARDED, other)


def test_a_value_handed_out_of_the_file_may_be_applied_there(tmp_path: Path) -> None:
    source = EPILOGUE.format(normal="y *= self.scale", deepep="y = kernel(y, self.scale)")
    (row,) = [d for d in find(tmp_path, source)["differences"] if d["kind"] == "not_done"]
    assert row["unseen"]
    assert not row["strong"]


def test_words_keep_what_concerns_them_and_list_the_uses(tmp_path: Path) -> None:
    source = EPILOGUE.format(normal="y *= self.scale\n            y = all_reduce(y)", deepep="y = y / self.other")
    reply = find(tmp_path, source, "scale")
    assert {d["subject"] for d in reply["differences"]} == {"scale"}
    assert reply["groups"][0]["members"][0]["uses"][0]["kind"] == "multiply"


def test_only_what_is_new_is_marked(tmp_path: Path) -> None:
    old = dedent(EPILOGUE.format(normal="y *= self.scale", deepep="y = y + 1"))
    new = old.replace("y *= self.scale", "y *= self.scale / self.width")
    write(tmp_path, {"tree/m.py": new, "stock/m.py": old})
    places = {"root": str(tmp_path / "tree"), "stock": str(tmp_path / "stock")}
    reply = twins.run({**places, "paths": ["m.py"]})
    assert {(d["subject"], d["new"]) for d in reply["differences"]} == {("scale", False), ("width", True)}
    assert [e["name"] for e in reply["lone_edits"]] == ["Moe.f_normal"]


class TestTool:
    def test_its_text_tells_who_lacks_what(self, tmp_path: Path) -> None:
        tree = write(
            tmp_path / "tree",
            {"m.py": dedent(EPILOGUE.format(normal="if not self.fused: y *= self.scale", deepep="y *= self.scale"))},
        )
        result = Bench(tree, tmp_path / "bench").call("twin_paths", paths=["m.py"])
        assert result.status == "ok"
        assert "Moe.f_deepep: multiply of scale without asking self.fused (1 of 2 twins have it)" in result.text

    def test_no_file_no_data(self, tmp_path: Path) -> None:
        result = Bench(write(tmp_path / "tree", {"a.py": ""}), tmp_path / "bench").call("twin_paths", paths=[])
        assert result.status == "no_data"

    def test_what_it_cannot_read_it_names(self, tmp_path: Path) -> None:
        tree = write(tmp_path / "tree", {"a.py": "def f(:\n", "k.cu": "int x;\n", "b.py": b"x = 1\0"})
        result = Bench(tree, tmp_path / "bench").call("twin_paths", paths=["a.py", "k.cu", "b.py"])
        assert result.status == "no_data"
        assert "not compared: a.py: isn't valid Python" in result.text
        assert "not compared: k.cu: not Python" in result.text

    @pytest.mark.parametrize("path", ["../x.py", "nowhere.py", "a.py:Nothing"])
    def test_a_wrong_path_is_an_error_with_its_name(self, tmp_path: Path, path: str) -> None:
        tree = write(tmp_path / "tree", {"a.py": "def f(): ...\n"})
        result = Bench(tree, tmp_path / "bench").call("twin_paths", paths=[path])
        assert result.status == "error"
        assert path.partition(":")[2] in result.text

    def test_a_monstrous_choice_ends(self, tmp_path: Path) -> None:
        lines = [f"    if x == {n}: return f_{n}_cpu(x)" for n in range(3_000)]
        tree = write(tmp_path / "tree", {"a.py": "def f_cpu(x):\n" + "\n".join(lines) + "\n"})
        bench = Bench(tree, tmp_path / "bench")
        for tool in ("twin_paths", "dead_parameter"):
            assert bench.call(tool, paths=["a.py"]).status in ("ok", "no_data")
