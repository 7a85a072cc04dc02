"""Fixtures that several unit tests share."""

from pathlib import Path

import pytest

from sleuth.tools.exactly_once_cache import TraceCache


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TraceCache:
    """A cache of the tracer's answers in a folder of its own."""
    monkeypatch.setenv("SLEUTH_CACHE", str(tmp_path / "cache"))
    opened = TraceCache.open()
    assert opened is not None
    return opened
