"""Answers of the tracer that are kept: under what, and what becomes of damaged ones."""

import os
from pathlib import Path

import pytest

from sleuth.tools import exactly_once_cache
from sleuth.tools.exactly_once_cache import TraceCache

from ...support.trees import write


def test_the_key_holds_all_that_an_answer_depends_on(
    cache: TraceCache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree = write(tmp_path / "tree", {"a.py": "a\n"})
    patch = write(tmp_path / "patches", {"p.patch": "p\n"})
    keys = [
        cache.key({"factor": "f"}, [tree]),
        cache.key({"factor": "g"}, [tree]),
        cache.key({"factor": "f"}, [tree, patch]),
    ]
    assert cache.key({"factor": "f"}, [tree]) == keys[0]
    (patch / "p.patch").write_text("q\n")
    keys.append(cache.key({"factor": "f"}, [tree, patch]))
    (tree / "new.py").write_text("class B(A): ...\n")
    keys.append(cache.key({"factor": "f"}, [tree]))
    monkeypatch.setattr(exactly_once_cache, "OWN", (write(tmp_path / "own", {"changed.py": ""}),))
    keys.append(cache.key({"factor": "f"}, [tree]))
    assert len(set(keys)) == len(keys)


def test_an_answer_comes_back(cache: TraceCache) -> None:
    assert cache.load("k") is None
    cache.save("k", {"text": "\udcff é"})
    assert cache.load("k") == {"text": "\udcff é"}
    assert cache.load("other") is None


@pytest.mark.parametrize("content", [b"", b"{", b"[1]", b"\xff", b"[" * 100_000])
def test_a_damaged_answer_is_none(cache: TraceCache, content: bytes) -> None:
    cache.save("k", {})
    (cache.folder / "answers" / "k.json").write_bytes(content)
    assert cache.load("k") is None


def test_old_and_enormous_answers_are_not_kept(cache: TraceCache, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exactly_once_cache, "MOST_ANSWERS", 2)
    monkeypatch.setattr(exactly_once_cache, "LARGEST_ANSWER", 100)
    cache.save("huge", {"text": "x" * 200})
    for number in range(4):
        cache.save(str(number), {})
        os.utime(cache.folder / "answers" / f"{number}.json", (number, number))
    kept = sorted(path.name for path in (cache.folder / "answers").iterdir())
    assert len(kept) == 2
    assert "3.json" in kept


def test_without_a_folder_there_is_no_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("SLEUTH_CACHE", str(tmp_path / "file"))
    assert TraceCache.open() is None


def test_an_answer_that_cannot_be_written_is_no_error(cache: TraceCache) -> None:
    cache.folder = cache.folder / "nowhere"
    cache.save("k", {})
    assert cache.load("k") is None
