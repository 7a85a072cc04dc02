"""Stock source from a wheel: fetched by pip from a folder, checked against RECORD, kept. No network is needed."""

from __future__ import annotations

import base64
import hashlib
import socket
import stat
import time
import zipfile
from pathlib import Path

import pytest

from sleuth.sandbox import wheel as wheels
from sleuth.sandbox.wheel import WheelError, cache_folder, fetch_source
from sleuth.sandbox.wheel import _unpack as unpack

FILES = {"demo/__init__.py": "", "demo/code.py": "x = 1\n", "demo-1.0.dist-info/WHEEL": "Wheel-Version: 1.0\n"}
METADATA = {
    "demo-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: demo\nVersion: 1.0\nRequires-Dist: no-such-thing\n"
}


def record(files: dict[str, str], kind: str = "sha256") -> str:
    rows = []
    for name, text in files.items():
        digest = base64.urlsafe_b64encode(hashlib.new(kind, text.encode()).digest()).rstrip(b"=").decode()
        rows.append(f"{name},{kind}={digest},{len(text)}\n")
    return "".join(rows) + "demo-1.0.dist-info/RECORD,,\n"


def make(folder: Path, files: dict[str, str] | None = None, stated: str | None = None) -> Path:
    """A wheel that pip takes for demo 1.0."""
    files = {**FILES, **METADATA, **(files or {})}
    folder.mkdir(exist_ok=True)
    path = folder / "demo-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
        if stated != "":
            archive.writestr("demo-1.0.dist-info/RECORD", record(files) if stated is None else stated)
    return path


@pytest.fixture
def links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that stands in for the package index, and an empty cache."""
    for name in ("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_CONFIG_FILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "links"))
    monkeypatch.setenv("SLEUTH_CACHE", str(tmp_path / "cache"))
    (tmp_path / "links").mkdir()
    return tmp_path / "links"


def test_a_wheel_is_fetched_once_without_what_it_requires(
    links: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    wheel = make(links)
    folder = fetch_source("demo==1.0")
    assert folder == tmp_path / "cache/demo-1.0"
    assert (folder / "demo/code.py").read_text() == "x = 1\n"
    assert stat.S_IMODE((folder / "demo/code.py").stat().st_mode) == 0o444
    assert capfd.readouterr() == ("", f"fetching demo==1.0 into {tmp_path / 'cache'}\n")
    wheel.unlink()
    assert fetch_source("demo==1.0") == folder
    assert capfd.readouterr() == ("", "")
    assert [p.name for p in (tmp_path / "cache").iterdir()] == ["demo-1.0"]


GOOD = {**FILES, **METADATA}


@pytest.mark.parametrize(
    ("files", "stated", "said"),
    [
        (
            {},
            record({**GOOD, "demo/code.py": "x = 2\n"}),
            "demo/code.py doesn't match the hash in RECORD: the wheel is",
        ),
        (
            {},
            record({**GOOD, "demo/gone.py": "y\n"}),
            "demo/gone.py stands in RECORD and isn't there: the wheel is damaged",
        ),
        (
            {"demo/extra.py": "y\n"},
            record(GOOD),
            "demo/extra.py doesn't match the hash in RECORD: the wheel is damaged",
        ),
        ({}, record(GOOD, "md5"), "demo/__init__.py doesn't match the hash in RECORD: the wheel is damaged"),
        ({}, "", "demo-1.0-py3-none-any.whl holds no RECORD files, so nothing vouches for its content"),
        ({}, "justaname\n", "RECORD can't be read: list index out of range; the wheel is damaged"),
        ({}, record({**GOOD, "../../../etc/passwd": "x"}), "../../../etc/passwd stands in RECORD and isn't there"),
    ],
)
def test_a_wheel_that_is_not_what_it_says(tmp_path: Path, files: dict[str, str], stated: str, said: str) -> None:
    wheel = make(tmp_path / "links", files, stated)
    with pytest.raises(WheelError) as error:
        unpack(wheel, tmp_path / "source")
    assert str(error.value).startswith(said)


def test_nothing_of_a_damaged_wheel_is_kept(links: Path, tmp_path: Path) -> None:
    make(links, {}, record({**GOOD, "demo/code.py": "x = 2\n"}))
    with pytest.raises(WheelError, match="the wheel is damaged"):
        fetch_source("demo==1.0")
    assert list((tmp_path / "cache").iterdir()) == []


def test_stronger_hashes_are_taken(tmp_path: Path) -> None:
    unpack(make(tmp_path / "links", {}, record(GOOD, "sha512")), tmp_path / "source")
    assert (tmp_path / "source/demo/code.py").is_file()


@pytest.mark.parametrize("cut", [10, 300, 10_000])
def test_a_wheel_cut_short(tmp_path: Path, cut: int) -> None:
    wheel = make(tmp_path / "links")
    wheel.write_bytes(wheel.read_bytes()[:-cut])
    with pytest.raises(WheelError, match="can't be unpacked: "):
        unpack(wheel, tmp_path / "source")


@pytest.mark.parametrize("name", ["../evil", "/evil", "demo/../../evil"])
def test_a_wheel_can_not_write_elsewhere(tmp_path: Path, name: str) -> None:
    with pytest.raises(WheelError, match="stands in RECORD and isn't there"):
        unpack(make(tmp_path / "links", {name: "x"}), tmp_path / "in/source")
    assert sorted(str(p.relative_to(tmp_path)) for p in tmp_path.rglob("*evil*")) == [
        f"in/source/{name.replace('../', '').lstrip('/')}"
    ]
    assert not Path("/evil").exists()


def test_a_version_that_is_not_there(links: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(links)
    monkeypatch.setattr(wheels, "TARGETS", wheels.TARGETS[:2])  # pip takes seconds for each
    with pytest.raises(WheelError) as error:
        fetch_source("demo==2.0")
    said = str(error.value)
    assert said.startswith(
        "can't fetch the stock source demo==2.0: ERROR: No matching distribution found for demo==2.0\n"
    )
    assert "pip download --no-deps demo==2.0" in said
    assert "--stock FOLDER" in said


def test_no_network_is_said_at_once(links: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    monkeypatch.delenv("PIP_NO_INDEX")
    monkeypatch.delenv("PIP_FIND_LINKS")
    monkeypatch.setenv("PIP_INDEX_URL", f"http://127.0.0.1:{port}/simple")
    monkeypatch.setenv("PIP_RETRIES", "1")
    start = time.monotonic()
    with pytest.raises(
        WheelError, match=r"can't fetch the stock source demo==1\.0: the package index can't be reached: "
    ):
        fetch_source("demo==1.0")
    assert time.monotonic() - start < 20


@pytest.mark.parametrize(
    "text",
    ["demo", "demo>=1", "demo==", "==1", "demo==1; x", "demo==1 --pre", "-r==x", "../x==1", "demo==1/2", "demo @ x"],
)
def test_only_an_exact_version_will_do(links: Path, text: str) -> None:
    with pytest.raises(WheelError, match=r"an exact NAME==VERSION is needed, e\.g\. pypi:sglang==0\.5\.12"):
        fetch_source(text)


def test_where_the_cache_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    monkeypatch.delenv("SLEUTH_CACHE", raising=False)
    assert cache_folder() == tmp_path / "xdg/sleuth"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert cache_folder() == tmp_path / "home/.cache/sleuth"
    (tmp_path / "file").touch()
    monkeypatch.setenv("SLEUTH_CACHE", str(tmp_path / "file/x"))
    with pytest.raises(
        WheelError, match=r"can't make the cache .*file/x: Not a directory; set SLEUTH_CACHE to a folder"
    ):
        cache_folder()
