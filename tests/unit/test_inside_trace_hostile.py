"""Half-broken and hostile trees: the trace reads what it can and says what it could not."""

import ast
import os
from pathlib import Path
from typing import Any

import pytest

from sleuth.tools.inside import trace
from sleuth.tools.inside.chunks import Source, split
from sleuth.tools.inside.definitions import Module
from sleuth.tools.inside.source import LARGEST, Tree


def run(root: Path, symbol: str, entry: str) -> dict[str, Any]:
    return trace.run({"root": str(root), "symbol": symbol, "entry": entry})


def spots(reply: dict[str, Any]) -> list[tuple[str, int, str]]:
    return [(o["file"], o["line"], o["kind"]) for o in reply["occurrences"]]


def hidden(reply: dict[str, Any]) -> list[tuple[str, int, str, bool]]:
    return [(u["file"], u["line"], u["kind"], u["touches"]) for u in reply["unseen"]]


class TestUnseen:
    def test_every_kind(self, tmp_path: Path) -> None:
        (tmp_path / "gone").mkdir()
        (tmp_path / "gone" / "__init__.py").write_text("")
        lines = [
            "import importlib",  # 1
            "import torch",
            "from torch import *",  # 3
            "from gone import missing",  # 4
            "def f(self, name, **kwargs):",
            "    self.s = getattr(self, name)",  # 6
            "    setattr(self, name, 1)",  # 7
            "    g(**kwargs)",  # 8
            "    importlib.import_module(name)",  # 9
            "    __import__(name)",  # 10
            "    exec(name)",  # 11
            "    eval(name)",  # 12
            "    vars(self).update(kwargs)",  # 13
            "    self.__dict__[name] = 1",  # 14
            "    torch.nn.Linear.forward = f",  # 15
            "    h = lambda: self.s",  # 16
            "    def inner():",
            "        return self.s",  # 18
            "def far(self, name):",
            "    self.model.eval()",
            "    getattr(self, 'known')",
            "    return getattr(self, name)",  # 22
        ]
        (tmp_path / "m.py").write_text("\n".join(lines))
        assert hidden(run(tmp_path, "s", "m.py")) == [
            ("m.py", 6, "getattr", True),
            ("m.py", 7, "setattr", True),
            ("m.py", 8, "kwargs", True),
            ("m.py", 9, "dynamic_import", True),
            ("m.py", 10, "dynamic_import", True),
            ("m.py", 11, "exec", True),
            ("m.py", 12, "exec", True),
            ("m.py", 13, "namespace", True),
            ("m.py", 14, "namespace", True),
            ("m.py", 15, "monkey_patch", True),
            ("m.py", 16, "lambda", True),
            ("m.py", 18, "closure", True),
            ("m.py", 3, "star_import", True),
            ("m.py", 22, "getattr", False),
            ("m.py", 4, "unresolved_import", False),
        ]

    def test_only_what_was_visited_counts(self, tmp_path: Path) -> None:
        (tmp_path / "m.py").write_text("from lib import f\n\nf()\n")
        (tmp_path / "lib.py").write_text("def f():\n    s = 1\n\n\ndef g(n):\n    eval(n)\n")
        assert run(tmp_path, "s", "m.py")["unseen"] == []

    def test_a_file_that_cannot_be_parsed(self, tmp_path: Path) -> None:
        (tmp_path / "m.py").write_text("from lib import f\n\nf()\ns = 1\n")
        (tmp_path / "lib.py").write_text("s = 1\nif x\n")
        reply = run(tmp_path, "s", "m.py")
        assert hidden(reply) == [("lib.py", 2, "unparsable", True)]
        assert reply["unseen"][0]["text"] == "expected ':' (line 2)"

    def test_a_broken_function_leaves_the_others_readable(self, tmp_path: Path) -> None:
        (tmp_path / "m.py").write_text("def bad(:\n    s = 1\n\n\ndef good(s):\n    return s\n")
        reply = run(tmp_path, "s", "m.py")
        assert spots(reply) == [("m.py", 5, "parameter"), ("m.py", 6, "read")]
        assert hidden(reply) == [("m.py", 1, "unparsable", True)]


class TestBytes:
    @pytest.mark.parametrize(
        "data",
        [
            b"\xef\xbb\xbfs = 1\n",
            b"# a\r\n\r\ns = 1\r\n",
            b"# -*- coding: latin-1 -*-\nx = '\xe9'\ns = 1\n",
            b"x = '\xff\xfe'\ns = 1\n",
            b"# coding: no-such-codec\ns = 1\n",
            b"x = 1\n\x0cs = 1\n",
            b"\x0c\x0cs = 1\n",
        ],
        ids=["bom", "crlf", "cookie", "invalid", "unknown-codec", "form-feed", "leading-form-feeds"],
    )
    def test_encodings_and_line_ends(self, tmp_path: Path, data: bytes) -> None:
        (tmp_path / "m.py").write_bytes(data)
        line = data.replace(b"\r\n", b"\n")[: data.replace(b"\r\n", b"\n").index(b"s = 1")].count(b"\n") + 1
        assert spots(run(tmp_path, "s", "m.py")) == [("m.py", line, "assignment")]

    def test_a_definition_after_a_form_feed(self, tmp_path: Path) -> None:
        (tmp_path / "m.py").write_bytes(b"def f():\n    pass\n\x0c\ndef g(s):\n    pass\n\x0cdef h(s):\n    pass\n")
        assert [line for _, line, _ in spots(run(tmp_path, "s", "m.py"))] == [4, 6]

    def test_names_that_are_not_text_or_hold_newlines(self, tmp_path: Path) -> None:
        (tmp_path / "new\nline").mkdir()
        (tmp_path / "new\nline" / "m.py").write_text("s = 1\n")
        (tmp_path / os.fsdecode(b"\xff.py")).write_text("s = 1\n")
        assert spots(run(tmp_path, "s", "new\\x0aline/m.py")) == [("new\\x0aline/m.py", 1, "assignment")]
        assert spots(run(tmp_path, "s", "\\xff.py")) == [("\\xff.py", 1, "assignment")]

    @pytest.mark.parametrize(
        "source",
        ["s = " + "(" * 5000, "s = " + "-" * 100_000 + "1", "s = " + "1+" * 100_000 + "1", "s = '\0'"],
        ids=["parentheses", "signs", "sums", "nul"],
    )
    def test_depth_and_nul_end_in_a_message(self, tmp_path: Path, source: str) -> None:
        (tmp_path / "lib.py").write_text(source + "\n")
        (tmp_path / "m.py").write_text("from lib import s\n\nt = s\n")
        reply = run(tmp_path, "s", "m.py")
        assert ("lib.py", "unparsable") in {(file, kind) for file, _, kind, _ in hidden(reply)}

    def test_deep_but_valid_expressions(self, tmp_path: Path) -> None:
        (tmp_path / "m.py").write_text("y = " + "(" * 80 + "x * s" + ")" * 80 + "\n")
        assert spots(run(tmp_path, "s", "m.py")) == [("m.py", 1, "multiply")]

    def test_a_long_chain_of_reexports(self, tmp_path: Path) -> None:
        for n in range(600):
            (tmp_path / f"m{n}.py").write_text(f"from m{n + 1} import f\n")
        (tmp_path / "m600.py").write_text("def f(s):\n    pass\n")
        (tmp_path / "m.py").write_text("from m0 import f\n\nf(s=1)\n")
        assert ("m.py", 3, "keyword_argument") in spots(run(tmp_path, "s", "m.py"))


class TestFiles:
    @pytest.fixture
    def root(self, tmp_path: Path) -> Path:
        (tmp_path / "m.py").write_text("from lib import f\nimport s\n\nf()\n")
        return tmp_path

    def why(self, root: Path) -> str:
        rows = run(root, "s", "m.py")["unseen"]
        return next((row["text"] for row in rows if row["kind"] == "unparsable"), "")

    def test_a_fifo_is_not_opened(self, root: Path) -> None:
        os.mkfifo(root / "lib.py")
        assert self.why(root) == "it isn't a regular file"

    def test_a_huge_file_is_not_read(self, root: Path) -> None:
        with (root / "lib.py").open("wb") as stream:
            stream.truncate(200 << 20)
        assert self.why(root) == f"it is 209,715,200 bytes long, over {LARGEST:,}"

    def test_links_out_of_the_tree_lead_nowhere(self, root: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
        outside = tmp_path_factory.mktemp("outside") / "lib.py"
        outside.write_text("def f(s):\n    pass\n")
        (root / "lib.py").symlink_to(outside)
        assert [kind for _, _, kind in spots(run(root, "s", "m.py"))] == ["import"]

    def test_link_loops_and_a_folder_inside_itself(self, tmp_path: Path) -> None:
        package = tmp_path / "pkg"
        package.mkdir()
        (package / "__init__.py").write_text("")
        (package / "again").symlink_to(package)
        (package / "round.py").symlink_to("round.py")
        (package / "lib.py").write_text("def f(s):\n    pass\n")
        (package / "m.py").write_text("from .round import x\nfrom .again.again.lib import f\n\nf(), x()\n")
        assert spots(run(tmp_path, "s", "pkg/m.py")) == [("pkg/lib.py", 1, "parameter")]


class TestChunks:
    @pytest.mark.parametrize(
        "text",
        [
            'TEXT = """\ndef fake():\n    pass\n"""\n\n\ndef real():\n    pass\n',
            "x = '''\nclass Fake:\n'''\n\n\ndef real(a='''\n)\n'''):\n    return 1\n\ny = 2\n",
            "@wrap(\n'a',\n)\n# note\n@other\nasync def real(\n    a,\n):\n    pass\n",
            'def real():\n    assert x == \\\n"""\nclass Fake: ...\n"""\n\n\ny = 1\n',
            "def real(\na,\nb):\n    pass\nz = 1\n",
            "x = (1\n@ y)\n\n\ndef real(): pass\n",
            'if a:\n    def inner(): pass\n\n\nclass real:\n    # text\n# more\n    x = \'"""\'\n',
            'def real():\n    """doc\n\nclass Fake:\n    """\n    return "\\\\"  # it\'s "quoted\n',
            "s = 'a\\\ndef fake'\n\n\ndef real():\n    pass\n",
        ],
    )
    def test_the_split_gives_what_the_parser_gives(self, text: str) -> None:
        whole = ast.parse(text).body
        module = Module("m.py", text)
        pieces = module.whole.nodes
        assert [ast.dump(node, include_attributes=True) for node in pieces] == [
            ast.dump(node, include_attributes=True) for node in whole
        ]
        assert module.find("real") is not None
        assert module.find("Fake") is None

    def test_definitions_stay_unparsed_until_entered(self) -> None:
        header, chunks = split(Source("import a\n\n\n@b\ndef f():\n    pass\n\n\nclass C:\n    pass\nx = 1\n"))
        assert [(c.name, c.kind, c.start, c.line) for c in chunks] == [("f", "function", 4, 5), ("C", "class", 9, 9)]
        assert [line for line in header.split("\n") if line] == ["import a", "x = 1"]
        assert header.split("\n").index("x = 1") == 10
        assert all("node" not in vars(chunk) for chunk in chunks)


def test_a_tree_is_only_read_inside(tmp_path: Path) -> None:
    (tmp_path / "in.py").write_text("x")
    tree = Tree(str(tmp_path))
    assert tree.canonical("../in.py") is None
    assert tree.canonical("in.py") == "in.py"
    assert tree.contains("in.py", b"x")
    assert not tree.contains("absent.py", b"x")
