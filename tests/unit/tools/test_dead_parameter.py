"""Dead parameters: what counts as a use, what is excused, and what a branch leaves behind."""

from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from sleuth.tools.inside import dead_parameter

from ...support.trees import Bench, write


def find(folder: Path, files: dict[str, str], *words: str) -> dict[str, Any]:
    """The script's reply about `m.py`."""
    write(folder / "tree", {name: dedent(text) for name, text in files.items()})
    return dead_parameter.run({"root": str(folder / "tree"), "stock": "", "paths": ["m.py"], "words": list(words)})


def found(reply: dict[str, Any]) -> list[tuple[str, str, str]]:
    return [(f["kind"], f["name"], f["confidence"]) for f in reply["findings"]]


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        ("return x", "never_read"),
        ("return x + len('scale')", "never_read"),
        ("return (lambda scale: scale)(x)", "never_read"),
        ("assert scale == 1\n    return x", "only_checked"),
        ("if scale != 1:\n        raise ValueError(scale)\n    return x", "only_checked"),
        ("logger.info('%s', scale)\n    return x", "only_checked"),
        ("scale\n    return x", "only_checked"),
        ("return x\n    return x * scale", "only_checked"),
        ("if False:\n        x = x * scale\n    return x", "only_checked"),
        ("scale = 1.0\n    return x * scale", "overwritten"),
        ("return x * scale", ""),
        ("scale = scale or 1.0\n    return x * scale", ""),
        ("if x:\n        scale = 1.0\n    return x * scale", ""),
        ("scale += 1\n    return x", ""),
        ("return f'{x} {scale}'", ""),
        ("return [scale for _ in x]", ""),
        ("def inner():\n        return scale\n    return x, inner", ""),
        ("if scale is None:\n        return x\n    return x * 2", ""),
        ("return torch.log(scale) + x", ""),
        ("del scale\n    return x", ""),
        ("return f(**locals()) + x", ""),
    ],
)
def test_what_is_a_use(tmp_path: Path, body: str, kind: str) -> None:
    reply = find(tmp_path, {"m.py": f"def f(x, scale):\n    {body}\n"})
    assert [f["kind"] for f in reply["findings"] if f["name"] == "scale"] == ([kind] if kind else [])


@pytest.mark.parametrize(
    "source",
    [
        "def f(x, _scale): return x",
        "def f(x, unused_scale): return x",
        "def f(x, scale): raise NotImplementedError",
        "def f(x, scale):\n    '''To be written.'''",
        "def f(x, scale): return False",
        "class A:\n    def __exit__(self, *args): return None",
        "class A:\n    @abstractmethod\n    def f(self, x, scale):\n        y = x\n        return y",
        "@torch.library.register_fake('f')\ndef f(x, scale):\n    y = x\n    return y",
        "def _f_fake(x, scale):\n    y = x\n    return y",
    ],
)
def test_what_is_excused(tmp_path: Path, source: str) -> None:
    assert found(find(tmp_path, {"m.py": source + "\n"})) == []


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("from base import B\nclass A(B):\n    def go(self, x, scale):\n        return x\n", "the base class Root"),
        (
            "from away import B\nclass A(B):\n    def go(self, x, scale):\n        return x\n",
            "the base class B, which isn't in the tree",
        ),
        ("def go(x, scale):\n    return x\nhooks = [go]\n", "whoever calls it back: it is handed on at line 3"),
    ],
)
def test_an_interface_explains_an_unused_parameter(tmp_path: Path, source: str, said: str) -> None:
    base = "class Root:\n    def go(self, x, scale):\n        return x * scale\n\n\nclass B(Root):\n    pass\n"
    (row,) = find(tmp_path, {"m.py": source, "base.py": base})["findings"]
    assert row["confidence"] == "low"
    assert row["required"] == said


def test_siblings_that_read_it_make_it_certain(tmp_path: Path) -> None:
    source = "def f_cuda(x, scale):\n    return x * scale\n\n\ndef f_cpu(x, scale):\n    return x\n"
    (row,) = find(tmp_path, {"m.py": source})["findings"]
    assert (row["confidence"], row["scope"]) == ("high", "f_cpu")
    assert [(s["name"], s["line"], s["text"]) for s in row["siblings"]] == [("f_cuda", 2, "return x * scale")]


KEEPS = (
    "class A:\n    def __init__(self, scale):\n        self.scale = scale\n\n    def go(self, x):\n        return x\n"
)


@pytest.mark.parametrize(
    ("other", "confidence"),
    [
        ("", "high"),
        ("x.scale = 1\n", "high"),
        ("def f(c):\n    return c.scale\n", "medium"),
        ("from m import A\n\n\ndef f(a):\n    return a.scale\n", ""),
        ("from m import A\n\n\ndef f(a):\n    return getattr(a, 'scale')\n", ""),
    ],
)
def test_kept_for_nobody(tmp_path: Path, other: str, confidence: str) -> None:
    expected = [("stored_never_read", "scale", confidence)] if confidence else []
    assert found(find(tmp_path, {"m.py": KEEPS, "other.py": other})) == expected


def test_fields_that_nothing_in_the_tree_reads(tmp_path: Path) -> None:
    source = "@dataclass\nclass C:\n    a: int\n    b: int\n    c: int\n\n\nclass Plain:\n    d: int\n"
    reply = find(tmp_path, {"m.py": source, "deep/er/n.py": "def f(c):\n    return c.a, getattr(c, 'b')\n"})
    assert found(reply) == [("field_never_read", "c", "medium")]


CHOICE = """\
    from kernels import fast, slow

    def moe(x, w, ids, scale, fast_path):
        if fast_path:
            return fast(x, w, ids, scale)
        return slow(x, w, ids{more})
"""


@pytest.mark.parametrize(
    ("more", "dropped"),
    [("", True), (", scale=1.0", True), (", scale", False), (") * (scale", False), (", factor=scale", False)],
)
def test_a_branch_that_drops_what_its_sibling_hands_on(tmp_path: Path, more: str, dropped: bool) -> None:
    reply = find(tmp_path, {"m.py": CHOICE.format(more=more)})
    assert found(reply) == ([("dropped_on_branch", "scale", "medium")] if dropped else [])


HELPED = """\
    class A:
        def f(self, x, w, ids, a):
            if a:
                return k(x, w, ids, self.s)
            return self.g(x, w, ids)

        def g(self, x, w, ids):
            return k(x, w, ids) * self.s
"""
CARRIED = """\
    class A:
        def __init__(self, s):
            self.s = s
            self.runner = Runner(s)

        def f(self, x, w, ids, a):
            if a:
                return k(x, w, ids, self.s)
            return self.runner.run(x, w, ids)
"""
HEAD = "def f(x, w, ids, s, a):\n"


@pytest.mark.parametrize(
    "source",
    [
        pytest.param(HEAD + "    if s is a:\n        return k(x, w, ids)\n    return k(x, w, ids, s)\n", id="about it"),
        pytest.param(HEAD + "    x *= s\n    if a: return k(x, w, ids, s)\n    return k(x, w, ids)\n", id="before"),
        pytest.param(HEAD + "    y = k(x, w, ids, s) if a else k(x, w, ids)\n    return y * s\n", id="after"),
        pytest.param(HEAD + "    if a:\n        return None\n    return k(x, w, ids, s)\n", id="no result"),
        pytest.param(HELPED, id="by a helper"),
        pytest.param(CARRIED, id="by an object that was made with it"),
    ],
)
def test_a_branch_that_drops_nothing(tmp_path: Path, source: str) -> None:
    assert found(find(tmp_path, {"m.py": source})) == []


CONFIG = (
    "@dataclass\nclass RunnerConfig:\n    act: str\n    factor: float\n\n\ndef use(c):\n    return c.act, c.factor\n"
)
PARTS = """\
    class A:
        def f(self, x, w, ids, a):
            if a:
                return k(x, w, ids, self.runner_config)
            act = self.runner_config.act
            return q(x, w, ids, act){more}
"""


def test_a_branch_that_takes_only_parts_of_what_its_sibling_hands_on_whole(tmp_path: Path) -> None:
    files = {"m.py": PARTS.format(more=""), "config.py": CONFIG}
    (row,) = find(tmp_path, files, "factor")["findings"]
    assert (row["kind"], row["name"], row["line"]) == ("left_behind", "self.runner_config", 5)
    assert "reads only act" in row["why"]
    assert row["why"].endswith("left behind: factor")
    files["m.py"] = PARTS.format(more=" * self.runner_config.factor")
    assert find(tmp_path, files, "factor")["findings"] == []


def test_only_what_is_new_is_marked(tmp_path: Path) -> None:
    old = "def f(x, a, b):\n    return x * a\n"
    write(tmp_path, {"tree/m.py": "def f(x, a, b):\n    return x\n", "stock/m.py": old})
    places = {"root": str(tmp_path / "tree"), "stock": str(tmp_path / "stock")}
    reply = dead_parameter.run({**places, "paths": ["m.py"]})
    assert [(f["name"], f["new"]) for f in reply["findings"]] == [("a", True), ("b", False)]
    assert [(row["name"], row["before"], row["after"]) for row in reply["lost"]] == [("a", 1, 0)]


class TestTool:
    def test_its_text_and_its_words(self, tmp_path: Path) -> None:
        tree = write(tmp_path / "tree", {"m.py": "def f(x, a, b):\n    return x\n"})
        result = Bench(tree, tmp_path / "bench").call("dead_parameter", paths=["m.py:f"], words=["b"])
        assert result.status == "ok"
        assert "m.py:1: never_read (medium): b of f: accepted and never read" in result.text
        assert "; 1 findings" in result.text

    def test_all_used_is_no_data_beside_a_control(self, tmp_path: Path) -> None:
        bench = Bench(write(tmp_path / "tree", {"m.py": "def f(x):\n    return x\n"}), tmp_path / "bench")
        result = bench.call("dead_parameter", paths=["m.py"])
        assert result.status == "no_data"
        assert result.text.startswith("1 parameters and fields")

    @pytest.mark.parametrize("path", ["../x.py", "nowhere.py", "a.py:Nothing"])
    def test_a_wrong_path_is_an_error_with_its_name(self, tmp_path: Path, path: str) -> None:
        bench = Bench(write(tmp_path / "tree", {"a.py": "def f(): ...\n"}), tmp_path / "bench")
        result = bench.call("dead_parameter", paths=[path])
        assert result.status == "error"
