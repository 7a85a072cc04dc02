"""The bounds of a trace: depth, lines, the owner of an attribute, and what it refuses."""

import os
from pathlib import Path
from typing import ClassVar

import pytest

from sleuth.tools.inside.fail import InsideError

from ..support.tracing import grow, run, spots


class TestLimits:
    def tree(self, root: Path) -> Path:
        text = "from m{1} import f{1}\n\n\ndef f{0}():\n    f{1}()\n"
        files = {f"m{n}.py": text.format(n, n + 1) for n in range(6)}
        return grow(root, files | {"m6.py": "def f6(knob):\n    return knob\n"})

    def test_depth_counts_files(self, tmp_path: Path) -> None:
        self.tree(tmp_path)
        assert run(tmp_path, "knob", "m0.py", max_depth=6)["home"] == "m6.py"
        assert run(tmp_path, "knob", "m0.py", max_depth=6)["reached"]["depth"] == 6
        short = run(tmp_path, "knob", "m0.py", max_depth=5)
        assert (short["home"], short["reached"]["cut"]) == (None, "ways end 5 files from the entry (max_depth)")
        assert run(tmp_path, "knob", "m2.py")["home"] == "m6.py"

    def test_lines_of_files_that_do_not_mention_it(self, tmp_path: Path) -> None:
        self.tree(tmp_path)
        reply = run(tmp_path, "knob", "m0.py", max_depth=6, max_lines=8)
        assert reply["home"] is None
        assert reply["reached"]["definitions"] == 5
        assert reply["reached"]["cut"] == (
            "1 definitions and files that don't mention knob were left unread after 8 lines of such (max_lines)"
        )
        assert run(tmp_path, "knob", "m0.py", max_depth=6, max_lines=10)["home"] == "m6.py"

    def test_occurrences_beyond_the_cap_are_counted(self, tmp_path: Path) -> None:
        grow(tmp_path, {"many.py": "knob = 1\n" * 2010})
        reply = run(tmp_path, "knob", "many.py")
        assert (len(reply["occurrences"]), reply["left_out"]["occurrences"]) == (2000, 10)
        assert reply["reached"]["cut"] == ""

    def test_a_file_of_nothing_but_mentions_is_not_read_to_its_end(self, tmp_path: Path) -> None:
        grow(tmp_path, {"many.py": "knob = 1\n" * 6000})
        reply = run(tmp_path, "knob", "many.py")
        assert reply["left_out"]["occurrences"] == 3000
        assert reply["reached"]["cut"] == "mentions beyond the first 5,000 were not examined"


class TestOwners:
    FILES: ClassVar = {
        "entry.py": """\
            from other import Other


            class Base:
                def __init__(self):
                    self.scale = 1


            class Layer(Base):
                def forward(self, x):
                    Other(scale=2)
                    return x * self.scale


            def free(scale):
                Layer(scale=3)
            """,
        "other.py": "class Other:\n    def __init__(self, scale):\n        self.scale = scale\n",
    }

    def test_dotted_symbol_keeps_the_class_and_its_relatives(self, tmp_path: Path) -> None:
        grow(tmp_path, self.FILES)
        reply = run(tmp_path, "Layer.scale", "entry.py")
        assert spots(reply) == [
            ("entry.py", 6, "attribute_assignment"),
            ("entry.py", 11, "keyword_argument"),
            ("entry.py", 12, "multiply"),
            ("entry.py", 16, "keyword_argument"),
        ]
        assert reply["reached"]["other_owners"] == 4

    def test_another_owner(self, tmp_path: Path) -> None:
        grow(tmp_path, self.FILES)
        assert spots(run(tmp_path, "Other.scale", "entry.py")) == [
            ("entry.py", 11, "keyword_argument"),
            ("other.py", 2, "parameter"),
            ("other.py", 3, "attribute_assignment"),
            ("other.py", 3, "read"),
        ]


class TestErrors:
    @pytest.fixture
    def root(self, tmp_path: Path) -> Path:
        grow(tmp_path, {"pkg/model.py": "class Layer:\n    pass\n", "pkg/data.bin": "a\0b"})
        (tmp_path / "pkg" / "broken.py").write_text("x = (\n")
        (tmp_path / "out.py").symlink_to("/etc/hostname")
        (tmp_path / "loop.py").symlink_to("loop.py")
        os.mkfifo(tmp_path / "pipe.py")
        return tmp_path

    @pytest.mark.parametrize(
        ("entry", "message"),
        [
            ("pkg/modle.py", "pkg/modle.py: no such file in the tree; did you mean 'model.py'?"),
            ("../etc/passwd", "../etc/passwd: outside the tree"),
            ("pkg", "pkg: a folder, not a file"),
            ("pkg/data.bin", "pkg/data.bin: not a text file"),
            ("pkg/broken.py", "pkg/broken.py: not Python that can be parsed: '(' was never closed (line 1)"),
            ("out.py", "out.py: a symbolic link that leads out of the tree"),
            ("loop.py", "loop.py: a symbolic link to loop.py that leads in a circle"),
            ("pipe.py", "pipe.py: not a regular file"),
            ("pkg/model.py:Layr", "pkg/model.py defines no Layr; it has Layer"),
        ],
    )
    def test_a_bad_entry_says_what_is_wrong(self, root: Path, entry: str, message: str) -> None:
        with pytest.raises(InsideError) as caught:
            run(root, "x", entry)
        assert str(caught.value).startswith(message)

    @pytest.mark.parametrize("symbol", ["", "a b", "1x", "a.", "x-y"])
    def test_a_symbol_must_be_a_name(self, root: Path, symbol: str) -> None:
        with pytest.raises(InsideError, match="not an identifier"):
            run(root, symbol, "pkg/model.py")
