"""Power counting of untrusted code: whatever it does, the table says so, and the other worlds are counted."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest

from ..support.powering import count, moe, outcomes, table

GUARDED = """\
if self.config.bad:
{body}
return x * self.factor
"""

BAD = {
    "an endless loop": ("while True:\n    pass", "didn't end within"),
    "an endless recursion": ("def f():\n    return f()\nf()", "RecursionError"),
    "too much memory": ("held = []\nwhile True:\n    held.append('x' * (1 << 24))", "Memory"),
    "exec": ("exec('1')", "exec"),
    "open": ("open('/etc/passwd')", "open"),
    "a swallowed refusal": ("try:\n    open('/etc/passwd')\nexcept:\n    pass", "open"),
}


def bad(tmp_path: Path, body: str, before: str = "", **more: Any) -> dict[str, Any]:
    indented = "\n".join("    " + line for line in body.splitlines())
    more = {"run_seconds": 1, **more}
    return count(tmp_path, moe(GUARDED.replace("{body}", indented), before=before), **more)


@pytest.mark.parametrize("name", BAD)
def test_a_bad_world_costs_only_itself(tmp_path: Path, name: str) -> None:
    body, reason = BAD[name]
    reply = bad(tmp_path, body)
    found = table(reply)
    assert found.pop("config.bad is false") == 1
    assert set(found.values()) == {"?"}
    assert any(reason in world["unknown"] for world in reply["worlds"]), reply["worlds"]


REACH = "import dataclasses\n"
"""A real module of the standard library, through which code can reach the rest of Python."""

BACKDOOR = {
    "os._exit": "dataclasses.sys.modules['os']._exit(0)",
    "a signal": "dataclasses.sys.modules['os'].kill(dataclasses.sys.modules['os'].getpid(), 9)",
    "sys.exit": "dataclasses.sys.exit(0)",
    "a closed channel": "[dataclasses.sys.modules['os'].close(n) for n in range(3, 40) if True]",
    "forks": (
        "os = dataclasses.sys.modules['os']\n"
        "for _ in range(5):\n    if os.fork() == 0:\n        while True:\n            pass"
    ),
    "noise on every channel": (
        "os = dataclasses.sys.modules['os']\n"
        "for n in range(64):\n    try:\n        os.write(n, b'{\"count\": 7}')\n    except OSError:\n        pass"
    ),
    "patched built-ins": "dataclasses.sys.modules['builtins'].sorted = None",
    "a patched instrument": (
        "name = [n for n in dataclasses.sys.modules if n.endswith('power.entry')][0]\n"
        "dataclasses.sys.modules[name].count_of = lambda total: None"
    ),
}


@pytest.mark.parametrize("name", BACKDOOR)
def test_code_that_reaches_around_is_never_counted(tmp_path: Path, name: str) -> None:
    before = len(_children())
    found = table(bad(tmp_path, BACKDOOR[name], before=REACH))
    assert found.pop("config.bad is false") == 1
    assert not [value for value in found.values() if isinstance(value, int) and value != 1], found
    assert any(isinstance(value, str) for value in found.values())
    assert len(_children()) == before


def _children() -> list[str]:
    return Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()


def test_prints_reach_nobody(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    reply = bad(tmp_path, "print('count 7')", before=REACH)
    assert set(outcomes(reply)) == {1}
    assert capfd.readouterr() == ("", "")


def test_an_import_outside_the_tree_is_a_stand_in(tmp_path: Path) -> None:
    before = "import subprocess, socket, ctypes, os\nfrom shutil import rmtree\n"
    body = "subprocess.run(['touch', '/tmp/x'])\nsocket.socket().connect(('a', 1))\nrmtree('/')\nos.system('true')"
    assert set(outcomes(bad(tmp_path, body, before=before))) == {1}


def test_the_budget_ends_and_says_so(tmp_path: Path) -> None:
    body = "\n".join(f"if self.config.a{n}:\n    x = x + {n}" for n in range(20)) + "\nreturn x * self.factor"
    reply = count(tmp_path, moe(body), runs=30)
    assert not reply["complete"]
    assert reply["runs"] <= 30
    assert any("more exist" in one for one in reply["assumptions"])


def test_time_ends_and_says_so(tmp_path: Path) -> None:
    started = time.monotonic()
    body = "\n".join(f"if self.config.a{n}:\n    x = x + {n}" for n in range(20)) + "\nreturn x * self.factor"
    reply = count(tmp_path, moe(body), runs=100_000, seconds=1)
    assert time.monotonic() - started < 10
    assert not reply["complete"]
