"""Defaults read from source trees: each construct, what disagrees, and what can't be read."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from sleuth.tools.inside import defaults
from sleuth.tools.inside.fail import InsideError


def find(root: Path, **request: Any) -> dict[str, Any]:
    return defaults.run({"root": str(root), **request})


def write(root: Path, **files: str) -> Path:
    for name, text in files.items():
        path = root / (name.replace("__", "/") + ".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def brief(answer: dict[str, Any], *keys: str) -> list[tuple[Any, ...]]:
    keys = keys or ("default", "known", "line", "how", "role")
    return [tuple(site[k] for k in keys) for site in answer["found"]]


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ('import os\nx = os.environ.get("X_A", "7")\n', ("7", True, 2, "os.environ.get", "default")),
        ('x = os.getenv("X_A")\n', (None, True, 1, "os.getenv", "default")),
        ('x = getenv("X_A", HOME / "x")\n', (None, False, 1, "os.getenv", "default")),
        ('x = os.environ["X_A"]\n', (None, False, 1, "os.environ[…] required", "required")),
        ('os.environ["X_A"] = "1"\n', (None, False, 1, "os.environ[…] assigned", "assigned")),
        ('x = "X_A" in os.environ\n', (None, False, 1, "tested for being set", "presence")),
        (
            'os.environ.setdefault("X_A", "1")\n',
            ("1", True, 1, "os.environ.setdefault", "assigned"),
        ),
        (
            'x = get_bool_env_var("X_A", "true")\n',
            ("true", True, 1, "get_bool_env_var(…)", "default"),
        ),
        ("class Envs:\n\n    X_A = EnvInt(-1)\n", (-1, True, 3, "EnvInt registry", "default")),
        ("class Envs:\n    X_A = EnvInt(2 ** 31)\n", (None, False, 2, "EnvInt registry", "default")),
        (
            "if TYPE_CHECKING:\n    X_A: bool = True\n",
            (True, True, 2, "type declaration", "declared"),
        ),
    ],
)
def test_each_way_to_read_a_variable(tmp_path: Path, code: str, expected: tuple[Any, ...]) -> None:
    answer = find(write(tmp_path, m=code), env=["X_A"])
    assert brief(answer) == [expected]
    assert ("X_A" in answer["chosen"]) == (expected[4] == "default" and expected[1])


def test_registry_of_lambdas_shows_the_whole_expression(tmp_path: Path) -> None:
    code = (
        "def port():\n    return 1\n\n"
        "environment_variables = {\n"
        '    "VAR_A": lambda: bool(int(os.getenv("VAR_A", "0"))),\n'
        '    "VAR_PORT": port,\n'
        '    "VAR_N": lambda: int(os.environ["VAR_N"]) if "VAR_N" in os.environ else None,\n'
        "}\n"
    )
    answer = find(write(tmp_path, envs=code), env=["VAR_*"])
    rows = {s["name"]: s for s in answer["found"] if s["role"] == "default"}
    assert rows["VAR_A"]["default"] == "0"
    assert rows["VAR_A"]["text"] == 'bool(int(os.getenv("VAR_A", "0")))'
    assert (rows["VAR_A"]["line"], rows["VAR_A"]["rank"]) == (5, 0)
    assert (rows["VAR_PORT"]["known"], rows["VAR_PORT"]["how"]) == (False, "registry, computed")
    roles = {s["role"] for s in answer["found"] if s["name"] == "VAR_N"}
    assert roles == {"presence"}
    assert answer["chosen"].keys() == {"VAR_A"}


def test_a_helpers_own_default_is_read_from_its_signature(tmp_path: Path) -> None:
    write(tmp_path, use='flag = get_flag_env("X_A")\n')
    assert brief(find(tmp_path, env=["X_A"]), "default", "known") == [(None, False)]
    write(tmp_path, pkg__util='def get_flag_env(name, default="false"):\n    return default\n')
    answer = find(tmp_path, env=["X_A"])
    assert brief(answer, "default", "how") == [("false", "get_flag_env(…), default in its signature")]


def test_places_that_differ_are_all_listed_and_flagged(tmp_path: Path) -> None:
    write(tmp_path, a='x = os.getenv("X_A", "1")\n', b='x = os.getenv("X_A", "2")\n')
    answer = find(tmp_path, env=["X_A"])
    assert brief(answer, "file", "default") == [("a.py", "1"), ("b.py", "2")]
    assert answer["conflicts"] == ["X_A"]
    assert answer["chosen"] == {}


def test_a_registry_beats_a_stray_read_and_still_flags_it(tmp_path: Path) -> None:
    write(tmp_path, a='x = os.getenv("X_A", "1")\n', z="class E:\n    X_A = EnvBool(False)\n")
    answer = find(tmp_path, env=["X_A"])
    assert answer["found"][answer["chosen"]["X_A"]]["file"] == "z.py"
    assert answer["conflicts"] == ["X_A"]


@pytest.mark.parametrize(("text", "flagged"), [("false", False), ("0", False), ("1", True)])
def test_a_flag_and_a_text_agree_by_what_they_switch(tmp_path: Path, text: str, flagged: bool) -> None:
    write(tmp_path, a=f'x = os.getenv("X_A", "{text}")\n', z="class E:\n    X_A = EnvBool(False)\n")
    assert (find(tmp_path, env=["X_A"])["conflicts"] == ["X_A"]) == flagged


def test_tests_and_examples_decide_nothing(tmp_path: Path) -> None:
    write(tmp_path, a='x = os.getenv("X_A", "1")\n', tests__t='x = os.getenv("X_A", "2")\n')
    answer = find(tmp_path, env=["X_A"])
    assert answer["conflicts"] == []
    assert answer["found"][answer["chosen"]["X_A"]]["default"] == "1"


ARGS = """import argparse, dataclasses

@dataclasses.dataclass
class ServerArgs:
    model_path: str
    tp_size: int = 1
    moe_backend: Literal[
        "a", "b"
    ] = "a"
    names: list = dataclasses.field(default_factory=list)

    def __post_init__(self):
        self.moe_backend = "b"
        if self.moe_backend == "b": pass

    @staticmethod
    def add_cli_args(parser):
        parser.add_argument("--model-path", "--model", type=str, required=True)
        parser.add_argument(
            "--tensor-parallel-size",
            "--tp-size",
            default=ServerArgs.tp_size,
        )
        parser.add_argument("--moe-backend", default=ServerArgs.moe_backend)
        parser.add_argument("--quiet", action="store_true")
        parser.add_argument("--loud", action="store_false")
        parser.add_argument("--eager", **kwargs["eager"])
"""


def test_arguments_of_a_class_and_its_parser(tmp_path: Path) -> None:
    answer = find(write(tmp_path, server_args=ARGS), args=["moe_backend", "tensor_parallel_size"])
    assert brief(answer, "name", "default", "line", "how", "rewritten") == [
        ("moe_backend", "a", 7, "field of ServerArgs", [13]),
        ("moe_backend", "a", 24, "add_argument, default from ServerArgs.moe_backend", []),
        ("tp_size", 1, 20, "add_argument, default from ServerArgs.tp_size", []),
    ]
    assert answer["found"][0]["text"] == '"a"'
    assert answer["conflicts"] == []


@pytest.mark.parametrize(
    ("name", "default", "known"),
    [("quiet", False, True), ("loud", True, True), ("eager", None, False), ("names", [], True)],
)
def test_implied_defaults(tmp_path: Path, name: str, default: Any, known: bool) -> None:
    answer = find(write(tmp_path, server_args=ARGS), args=[name])
    assert brief(answer, "default", "known") == [(default, known)]


def test_a_required_field_has_no_default(tmp_path: Path) -> None:
    answer = find(write(tmp_path, server_args=ARGS), args=["model_path"])
    assert answer["found"][0]["role"] == "required"
    assert answer["chosen"] == {}


@pytest.mark.parametrize(
    ("typed", "name", "flag"),
    [
        ("tp", "tp_size", False),
        ("tensor", "tp_size", False),
        ("model", "model_path", False),
        ("qui", "quiet", True),
    ],
)
def test_spellings_resolve_as_argparse_would(tmp_path: Path, typed: str, name: str, flag: bool) -> None:
    answer = find(write(tmp_path, server_args=ARGS), typed=[typed])
    assert (answer["aliases"][typed]["name"], answer["aliases"][typed]["flag"]) == (name, flag)


def test_an_ambiguous_abbreviation_is_not_resolved(tmp_path: Path) -> None:
    assert find(write(tmp_path, server_args=ARGS), typed=["mo"])["aliases"] == {}


def test_options_declared_in_annotations(tmp_path: Path) -> None:
    code = (
        "class Parallel(msgspec.Struct):\n"
        '    tp_size: A[int, Arg(help="--not-this", aliases=["--tensor-parallel-size"])] = 1\n'
        '    eager: A[bool, "Run without a graph."] = False\n'
    )
    write(tmp_path, fields=code)
    answer = find(tmp_path, typed=["tensor_parallel_size", "tp"], args=["eager"])
    assert answer["aliases"]["tp"]["names"] == ["tp_size", "tensor_parallel_size"]
    assert answer["aliases"]["tensor_parallel_size"]["line"] == 2
    assert brief(answer, "name", "default", "line", "rank") == [
        ("eager", False, 3, 0),
        ("tp_size", 1, 2, 0),
    ]


def test_a_default_named_in_another_file_is_followed(tmp_path: Path) -> None:
    write(tmp_path, config="@config\nclass CacheConfig:\n    cache_dtype: str = 'auto'\n")
    engine = "class EngineArgs:\n    kv_dtype: str = CacheConfig.cache_dtype\n"
    answer = find(write(tmp_path, engine=engine), args=["kv_dtype"])
    assert brief(answer, "default", "how") == [("auto", "field of EngineArgs, default from CacheConfig.cache_dtype")]


def test_of_two_servers_the_launched_one_counts(tmp_path: Path) -> None:
    field = "@dataclass\nclass ServerArgs:\n    size: int = {}\n"
    write(tmp_path, pkg__llm__args=field.format(1), pkg__image__args=field.format(2))
    write(tmp_path, pkg__launch="from pkg.llm.args import ServerArgs\n", pkg____init__="")
    assert find(tmp_path, args=["size"])["chosen"] == {}
    assert find(tmp_path, args=["size"])["conflicts"] == ["size"]
    answer = find(tmp_path, args=["size"], entry="pkg.launch")
    assert answer["found"][answer["chosen"]["size"]]["file"] == "pkg/llm/args.py"
    assert answer["conflicts"] == []


def test_a_console_command_leads_to_its_module(tmp_path: Path) -> None:
    field = "@dataclass\nclass ServerArgs:\n    size: int = {}\n"
    write(tmp_path, pkg__llm=field.format(1), pkg__image=field.format(2))
    write(tmp_path, pkg__cli__main="from ..llm import ServerArgs\n")
    (tmp_path / "pkg-1.dist-info").mkdir()
    entry = tmp_path / "pkg-1.dist-info" / "entry_points.txt"
    entry.write_text("[console_scripts]\nserve-it = pkg.cli.main:main\n")
    answer = find(tmp_path, args=["size"], entry="serve_it")
    assert answer["found"][answer["chosen"]["size"]]["file"] == "pkg/llm.py"


def test_words_in_comments_and_strings_are_no_sites(tmp_path: Path) -> None:
    text = '"""\nx = os.getenv("X_A", "1")\n"""\n# os.getenv("X_A", "2")\ny = 1\n'
    assert find(write(tmp_path, m=text), env=["X_A"])["found"] == []


def test_globs_and_prefixes(tmp_path: Path) -> None:
    write(tmp_path, e="class E:\n    OPT_A = EnvBool(True)\n    OPT_B = EnvBool(True)\n    OP = 1\n")
    assert [s["name"] for s in find(tmp_path, env=["OPT_*"])["found"]] == ["OPT_A", "OPT_B"]
    assert [s["name"] for s in find(tmp_path, env=["OPT_"])["found"]] == ["OPT_A", "OPT_B"]
    with pytest.raises(InsideError, match="three letters in a row"):
        find(tmp_path, env=["*"])


def test_a_hostile_tree_is_read_around(tmp_path: Path) -> None:
    write(tmp_path, good='x = os.getenv("X_A", "1")\n', bad='def f(:\n    os.getenv("X_A", "1")\n')
    (tmp_path / "latin.py").write_bytes(b'# caf\xe9\ny = os.getenv("X_A", "1")\n')
    (tmp_path / "nul.py").write_bytes(b'y = os.getenv("X_A", "1")\0\n')
    with (tmp_path / "big.py").open("wb") as stream:
        stream.truncate(200 << 20)
    os.mkfifo(tmp_path / "pipe.py")
    (tmp_path / "link.py").symlink_to("/etc/passwd")
    (tmp_path / "loop").symlink_to(tmp_path)
    odd = os.fsencode(tmp_path) + b"/\xff\n.py"
    Path(os.fsdecode(odd)).write_text('y = os.getenv("X_A", "1")\n')
    answer = find(tmp_path, env=["X_A"])
    where = [(s["file"], s["line"]) for s in answer["found"]]
    assert where == [("good.py", 1), ("latin.py", 2), ("\udcff\n.py", 1)]
    assert {s["file"]: s["why"] for s in answer["skipped"]} == {
        "bad.py": "not Python that can be parsed",
        "big.py": "209,715,200 bytes, over the limit of 4,194,304",
        "link.py": "Too many levels of symbolic links",
        "nul.py": "not Python that can be parsed",
        "pipe.py": "not a regular file",
    }


def test_windows_line_ends_keep_line_numbers(tmp_path: Path) -> None:
    (tmp_path / "m.py").write_bytes(b'a = 1\r\nb = (\r\n  os.getenv("X_A", "1"))\r\n')
    assert brief(find(tmp_path, env=["X_A"]), "line", "text") == [(3, '"1"')]


def test_a_missing_root_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InsideError, match="is not a folder"):
        find(tmp_path / "none", env=["X_A"])
