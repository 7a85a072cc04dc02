"""Where an empty search should look next."""

from pathlib import Path
from typing import Any

import pytest

from sleuth.tools.inside import leads
from sleuth.tools.inside.fail import InsideError


def grow(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def run(root: Path, file: str, hits: dict[str, int], **more: Any) -> dict[str, Any]:
    listed = [{"file": name, "count": count} for name, count in hits.items()]
    return leads.run({"root": str(root), "file": file, "hits": listed, **more})


def paths(reply: dict[str, Any]) -> list[tuple[str, int, int, list[tuple[str, int, str, str]]]]:
    return [
        (
            lead["file"],
            lead["count"],
            lead["distance"],
            [(h["file"], h["line"], h["via"], h["name"]) for h in lead["path"]],
        )
        for lead in reply["leads"]
    ]


FREE = "\n\ndef free():\n    import pkg.far\n"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    grow(
        tmp_path,
        {
            "pkg/__init__.py": "",
            "pkg/v4.py": "import pkg.v2 as v2\nfrom pkg.names import NAME\n\n\nclass Layer:\n    moe = v2.Moe()\n",
            "pkg/v2.py": "from pkg.topk import TopK\n\n\nclass Moe:\n    top = TopK()\n" + FREE,
            "pkg/topk.py": "from pkg.deep import Deep\n\n\nclass TopK(Deep):\n    pass\n",
            "pkg/deep.py": "class Deep:\n    pass\n",
            "pkg/far.py": "",
            "pkg/names.py": "NAME = 1\n",
        },
    )
    return tmp_path


HITS = {"pkg/far.py": 99, "pkg/deep.py": 9, "pkg/topk.py": 4, "pkg/names.py": 3, "pkg/v2.py": 2, "pkg/v4.py": 0}


def test_nearest_first_with_the_lines_that_lead_there(tree: Path) -> None:
    reply = run(tree, "pkg/v4.py", HITS)
    assert paths(reply) == [
        ("pkg/v2.py", 2, 1, [("pkg/v4.py", 1, "imports", "v2"), ("pkg/v4.py", 6, "constructs", "Moe")]),
        (
            "pkg/topk.py",
            4,
            2,
            [
                ("pkg/v4.py", 1, "imports", "v2"),
                ("pkg/v4.py", 6, "constructs", "Moe"),
                ("pkg/v2.py", 1, "imports", "TopK"),
                ("pkg/v2.py", 5, "constructs", "TopK"),
            ],
        ),
        ("pkg/names.py", 3, 4, [("pkg/v4.py", 2, "imports", "NAME")]),
    ]
    assert reply["leads"][0]["path"][1]["text"] == "moe = v2.Moe()"
    assert [hit["file"] for hit in reply["unreached"]] == ["pkg/far.py", "pkg/deep.py", "pkg/v4.py"]
    assert reply["why"] == ""


def test_depth(tree: Path) -> None:
    assert [lead["file"] for lead in run(tree, "pkg/v4.py", HITS, depth=3)["leads"]] == [
        "pkg/v2.py",
        "pkg/topk.py",
        "pkg/deep.py",
        "pkg/names.py",
    ]
    assert [lead["file"] for lead in run(tree, "pkg/v4.py", HITS, depth=1)["leads"]] == ["pkg/v2.py", "pkg/names.py"]


def test_at_most_twenty(tmp_path: Path) -> None:
    names = [f"m{n:02}" for n in range(25)]
    grow(tmp_path, {f"{name}.py": "x = 1\n" for name in names})
    grow(tmp_path, {"all.py": "".join(f"import {name}\n" for name in names)})
    reply = run(tmp_path, "all.py", {f"{name}.py": int(name[1:]) for name in names})
    assert [lead["count"] for lead in reply["leads"]] == list(range(24, 4, -1))
    assert [hit["count"] for hit in reply["unreached"]] == list(range(5))


def test_c_includes(tmp_path: Path) -> None:
    grow(
        tmp_path,
        {
            "csrc/moe/topk.cu": '#include <cuda.h>\n  #  include "../utils.cuh"\n#include "moe/types.h"\n',
            "csrc/utils.cuh": '#include "deep.h"\n',
            "csrc/deep.h": '#include "moe/topk.cu"\n#include "deeper.h"\n',
            "csrc/deeper.h": "",
            "csrc/include/moe/types.h": "",
        },
    )
    hits = {"csrc/deep.h": 1, "csrc/deeper.h": 1, "csrc/include/moe/types.h": 1}
    assert paths(run(tmp_path, "csrc/moe/topk.cu", hits)) == [
        ("csrc/include/moe/types.h", 1, 1, [("csrc/moe/topk.cu", 3, "imports", "moe/types.h")]),
        (
            "csrc/deep.h",
            1,
            2,
            [("csrc/moe/topk.cu", 2, "imports", "../utils.cuh"), ("csrc/utils.cuh", 1, "imports", "deep.h")],
        ),
    ]


@pytest.mark.parametrize(
    ("name", "text", "why"),
    [
        ("notes.md", "text", "only Python and C-family files say in a readable way where they lead"),
        ("bad.py", "x = (\n", "it can't be parsed: '(' was never closed (line 1)"),
    ],
)
def test_files_that_cannot_be_followed(tmp_path: Path, name: str, text: str, why: str) -> None:
    grow(tmp_path, {name: text, "hit.py": ""})
    assert run(tmp_path, name, {"hit.py": 1}) == {
        "leads": [],
        "unreached": [{"file": "hit.py", "count": 1}],
        "why": why,
    }


def test_names_as_they_are_shown(tmp_path: Path) -> None:
    (tmp_path / "new\nline").mkdir()
    grow(tmp_path, {"new\nline/a.py": "from .b import f\n\nf()\n", "new\nline/b.py": "def f(): pass\n"})
    reply = run(tmp_path, "new\\x0aline/a.py", {"new\\x0aline/b.py": 1})
    assert paths(reply) == [
        (
            "new\\x0aline/b.py",
            1,
            2,
            [("new\\x0aline/a.py", 1, "imports", "f"), ("new\\x0aline/a.py", 3, "calls", "f")],
        ),
    ]


def test_a_missing_file_is_an_error(tmp_path: Path) -> None:
    grow(tmp_path, {"model.py": ""})
    with pytest.raises(InsideError, match=r"did you mean 'model\.py'"):
        run(tmp_path, "modle.py", {})
