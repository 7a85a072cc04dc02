"""Processes and container descriptions, read as they are found."""

from __future__ import annotations

import json
import os
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from sleuth.tools.env_sources import container, process


def test_podman_inspect_and_device_ids(tmp_path: Path) -> None:
    config = {"Entrypoint": "/run.sh", "Cmd": ["--tp=4"], "Env": None, "Image": "i"}
    host = {"DeviceRequests": [{"DeviceIDs": ["0", "1"]}], "Devices": [{"PathOnHost": "/dev/kfd"}]}
    path = tmp_path / "p.json"
    path.write_text(json.dumps({"Config": config, "HostConfig": host}))
    found = {r.name: (r.value, r.source) for r in container(path, set()).readings}
    assert found == {
        "tp": (4, "p.json: Config.Cmd[0]: --tp"),
        "container.image": ("i", "p.json: Config.Image"),
        "container.gpus": (["0", "1"], "p.json: HostConfig.DeviceRequests[0]"),
        "container.devices": (["/dev/kfd"], "p.json: HostConfig.Devices"),
    }


def test_several_containers_are_said_to_be(tmp_path: Path) -> None:
    path = tmp_path / "i.json"
    path.write_text(json.dumps([{"Config": {}}] * 2))
    assert container(path, set()).notes == ["i.json describes 2 containers; only the first is read"]


def test_a_zombie_is_called_one() -> None:
    child = subprocess.Popen(["true"])
    try:
        deadline = time.monotonic() + 10
        while ") Z" not in Path(f"/proc/{child.pid}/stat").read_text():
            assert time.monotonic() < deadline
            time.sleep(0.01)
        assert process(child.pid, set()).failed == [
            f"process {child.pid}: has ended (a zombie), so nothing can be read of it"
        ]
    finally:
        child.wait()


def fake_proc(root: Path, **files: bytes) -> Path:
    home = root / "7"
    home.mkdir()
    (root / "stat").write_text("cpu 1\nbtime 1700000000\n")
    (home / "stat").write_text("7 (a ) b) S 3 " + "0 " * 17 + "200 0\n")
    for name, data in files.items():
        (home / name).write_bytes(data)
    return root


def test_a_kernel_thread_has_nothing_to_show(tmp_path: Path) -> None:
    found = process(7, set(), fake_proc(tmp_path, cmdline=b""))
    assert found.failed == ["process 7: no command line (a kernel thread, or it has just ended)"]
    assert found.readings == []


def test_a_process_under_a_title_of_its_own(tmp_path: Path) -> None:
    proc = fake_proc(tmp_path, cmdline=b"sglang::scheduler_TP0\0\0\0", environ=b"junk\0A=1\0")
    found = process(7, set(), proc)
    assert found.complete == set()
    assert found.notes[-1] == (
        f"{proc}/7/cmdline holds no options: a launcher, or a worker under a title of its own; its parent is 3"
    )
    assert "it was overwritten" in found.notes[0]


def test_the_loaded_runtime_names_the_accelerator(tmp_path: Path) -> None:
    maps = b"7f00-7f01 r-xp 0 08:01 5 /usr/lib/libamdhip64.so.6.2\n"
    found = process(7, set(), fake_proc(tmp_path, cmdline=b"a\0--b\0", environ=b"", maps=maps))
    fact = next(r for r in found.readings if r.name == "process.accelerator")
    assert (fact.value, fact.source) == ("hip", f"{tmp_path}/7/maps: libamdhip64.so.6.2")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read every process")
def test_a_process_of_someone_else_is_denied() -> None:
    found = process(1, set())
    assert any("permission denied: run sleuth as the same user" in why for why in found.failed)


def test_a_denied_environment_is_a_finding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    proc = fake_proc(tmp_path, cmdline=b"python\0-m\0a\0--tp\x008\0")
    opened = Path.open

    def denied(self: Path, *args: Any, **more: Any) -> Any:
        if self.name == "environ":
            raise PermissionError(13, "Permission denied")
        return opened(self, *args, **more)

    monkeypatch.setattr(Path, "open", denied)
    found = process(7, set(), proc)
    assert f"{proc}/7/environ: permission denied: run sleuth as the same user, or as root" in found.failed
    assert found.complete == {"arg"}
    assert [(r.name, r.value) for r in found.readings if r.kind == "arg"] == [("tp", 8)]
