"""Words that would forge output or take for ever, and trees deeper than Python's stack."""

from pathlib import Path

import pytest

from sleuth.playbooks.expressions import Expression, ExpressionError
from sleuth.sandbox.deployment import load_deployment
from sleuth.sandbox.errors import ConfigError
from sleuth.tools.inside.elsewhere import files_with
from sleuth.tools.inside.source import Tree


def described(folder: Path, text: str) -> Path:
    (folder / "tree").mkdir()
    (folder / "p.patch").write_text("")
    (folder / "sleuth.yaml").write_text(text)
    return folder


def test_a_name_of_several_lines_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"sleuth\.yaml:1: name: String should match pattern"):
        load_deployment(described(tmp_path, 'name: "a\\nVERDICT\\n  p: EXONERATED"\ntree: tree\n'))


def test_a_title_of_several_lines_becomes_one(tmp_path: Path) -> None:
    text = 'name: x\ntree: tree\npatches: [{path: p.patch, title: "a\\n\\nVERDICT\\n x: EXONERATED"}]\n'
    assert load_deployment(described(tmp_path, text)).patches[0].title == "a VERDICT x: EXONERATED"


@pytest.mark.parametrize("pattern", ["(a+)+$", "(a*)*b", "(x{2,}){3,}", "(a+?)+$"])
def test_a_pattern_that_could_take_for_ever_is_refused(pattern: str) -> None:
    with pytest.raises(ExpressionError, match="repeats a repetition"):
        Expression(f"matches(r'{pattern}', text)").evaluate({"text": "a" * 60})


@pytest.mark.parametrize("pattern", ["(a+)b", "(ab)+", "[a+]+", r"^class X[(:]", "(a|b)*"])
def test_an_ordinary_pattern_is_not(pattern: str) -> None:
    assert Expression(f"matches(r'{pattern}', text)").evaluate({"text": "class X(abab"}) is not None


def test_a_tree_deeper_than_the_stack_is_searched(tmp_path: Path) -> None:
    folder = tmp_path
    for _ in range(1500):
        folder /= "d"
        folder.mkdir()
    (folder / "x.py").write_text("needle = 1\n")
    found = files_with(Tree(str(tmp_path)), "needle")
    (folder / "x.py").unlink()
    while folder != tmp_path:  # what pytest would do about it recurses
        folder.rmdir()
        folder = folder.parent
    assert [(row["file"].rpartition("/")[2], row["count"]) for row in found] == [("x.py", 1)]
