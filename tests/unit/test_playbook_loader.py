"""Finding and reading playbooks, and the parameters given on the command line."""

import hashlib
from pathlib import Path
from typing import Any

import pytest

from sleuth.playbooks import loader
from sleuth.playbooks.schema import Grade, Parameter, Playbook
from sleuth.sandbox.errors import ConfigError, UsageError

from ..support.books import book, problems, step, write


def test_reading_gives_the_playbook_its_path_and_its_digest(tmp_path: Path) -> None:
    path = write(tmp_path, book(step("s1"), step("s2")))
    loaded = loader.read(path)
    assert loaded.path == path
    assert loaded.digest == hashlib.sha256(path.read_bytes()).hexdigest()
    assert [s.id for s in loaded.playbook.steps] == ["s1", "s2"]
    assert loaded.playbook.after("s1") == "s2"
    assert loaded.playbook.after("s2") == "end"
    assert loaded.playbook.step("s2").question == "s2?"


def test_the_name_must_be_the_files_own(tmp_path: Path) -> None:
    assert problems(tmp_path, book(name="other"), name="p") == [
        "name: other | name: 'other' must be the file's own name, 'p'"
    ]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "p.yaml:1: the file is empty; it must be a mapping with playbook, name"),
        ("- a", "p.yaml:1: the file is a list; it must be a mapping with"),
        ("playbook: [", "p.yaml:2: not valid YAML"),
        ("playbook: 1\nplaybook: 1", "p.yaml:2: playbook: this key stands twice in one mapping"),
        ("a: &a [1]\nb: *c", "p.yaml:2: not valid YAML: found undefined alias"),
        ("playbook: 1\nname: p\n", "p.yaml:1: title: this key is required"),
        ("playbook: !!python/object:os.system x", "p.yaml:1: not valid YAML"),
    ],
)
def test_a_file_that_is_no_playbook(tmp_path: Path, content: str, said: str) -> None:
    path = tmp_path / "p.yaml"
    path.write_text(content + "\n", encoding="utf-8")
    with pytest.raises(ConfigError) as error:
        loader.read(path)
    assert any(line.startswith(f"{tmp_path}/{said}") for line in str(error.value).splitlines()), error.value


def test_a_file_that_is_not_text(tmp_path: Path) -> None:
    (tmp_path / "p.yaml").write_bytes(b"a: 1\nb: \xff\n")
    with pytest.raises(ConfigError, match=r"p\.yaml:2: not UTF-8 text \(byte 0xff\)"):
        loader.read(tmp_path / "p.yaml")


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    write(tmp_path, book(), name="probe")
    with pytest.raises(ConfigError, match=r"prob\.yaml: doesn't exist; did you mean 'probe\.yaml'\?"):
        loader.read(tmp_path / "prob.yaml")


def test_own_playbooks_come_first_and_hide_built_in_ones(tmp_path: Path) -> None:
    builtin = loader.available()[0]
    mine = write(tmp_path, book(name="zz-mine"))
    hiding = write(tmp_path, book(name=builtin.stem))
    assert loader.available(tmp_path)[:2] == sorted([mine, hiding])
    assert loader.find("zz-mine", tmp_path) == mine
    assert loader.find(builtin.stem, tmp_path) == hiding
    assert loader.find(builtin.stem) == builtin
    assert loader.find("some/where.yml") == Path("some/where.yml")


def test_an_unknown_name_gets_a_hint() -> None:
    with pytest.raises(UsageError, match=r"no playbook 'double-scalin'; did you mean 'double-scaling'\?"):
        loader.find("double-scalin")


def test_one_bad_playbook_does_not_hide_the_others(tmp_path: Path) -> None:
    write(tmp_path, book(name="good"))
    write(tmp_path, book(step("s1", tool="nope"), name="bad"))
    good, bad = loader.read_all(tmp_path)
    assert good[0].playbook.name == "good"
    assert f"{tmp_path}/bad.yaml" in str(bad[0])
    assert "unknown tool 'nope'" in str(bad[0])


def playbook_with(**defaults: Any) -> Playbook:
    parameters = {name: Parameter(about=f"the {name}", default=default) for name, default in defaults.items()}
    return Playbook.model_validate({**book(), "parameters": {k: v.model_dump() for k, v in parameters.items()}})


@pytest.mark.parametrize(
    ("default", "text", "expected"),
    [
        ("a", "b", "b"),
        ("a", "", ""),
        ("a", "5", "5"),
        (None, "5", "5"),
        (1, "5", 5),
        (1, "-5", -5),
        (1.0, "5", 5.0),
        (1.0, "1e3", 1000.0),
        (False, "true", True),
        (False, "YES", True),
        (False, "1", True),
        (True, "no", False),
        (True, "False", False),
        (True, "0", False),
        (["a"], "b,c", ["b", "c"]),
        (["a"], " b , c ,", ["b", "c"]),
        (["a"], "", []),
    ],
)
def test_a_given_value_is_read_as_the_defaults_type(default: Any, text: str, expected: Any) -> None:
    found = loader.parameters(playbook_with(p=default, q="kept"), {"p": text})
    assert found == {"p": expected, "q": "kept"}
    assert type(found["p"]) is type(expected)


@pytest.mark.parametrize(
    ("default", "text", "said"),
    [
        (1, "5.5", "--param p=5.5: int expected, such as 1"),
        (1, "many", "--param p=many: int expected, such as 1"),
        (1.0, "x", "--param p=x: float expected, such as 1.0"),
        (1.0, "nan", "--param p=nan: float expected, such as 1.0"),
        (1.0, "inf", "--param p=inf: float expected, such as 1.0"),
        (True, "maybe", "--param p=maybe: bool expected, such as True"),
    ],
)
def test_a_value_of_another_type_is_refused(default: Any, text: str, said: str) -> None:
    with pytest.raises(UsageError) as error:
        loader.parameters(playbook_with(p=default), {"p": text})
    assert str(error.value) == said


def test_a_required_parameter_must_be_given() -> None:
    with pytest.raises(UsageError) as error:
        loader.parameters(playbook_with(p=None, q=1), {"q": "2"})
    assert str(error.value) == "p needs --param p=… (the p)"


def test_an_unknown_parameter_gets_a_hint() -> None:
    with pytest.raises(UsageError) as error:
        loader.parameters(playbook_with(factor=1), {"facto": "2"})
    assert str(error.value) == "--param facto: p has no such parameter; did you mean 'factor'?"


def test_grades_are_in_order() -> None:
    assert [g.value for g in sorted(Grade, key=lambda g: g.rank)] == "read computed observed toggled restored".split()
    assert [g.rank for g in Grade] == [0, 1, 2, 3, 4]
