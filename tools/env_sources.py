"""Read a deployment's settings: its description, a running process, a container's description.

Processes and container files are on the host, outside the clone, so they are read here and not in
the sandbox.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ..sandbox.deployment import Deployment, model_config
from ..sandbox.errors import ConfigError
from .env_argv import Command, Value, flat, inner, parse_command

MAX_BYTES = 16 << 20
OVERRIDES = ("json_model_override_args", "hf_overrides")
"""Options whose JSON object replaces values of the model's config.json."""
ACCELERATORS = {"libcudart.so": "cuda", "libcuda.so": "cuda", "libamdhip64.so": "hip"}
ACCELERATORS |= {"libascendcl.so": "npu", "libze_loader.so": "xpu", "libmusa.so": "musa"}


@dataclass(frozen=True)
class Reading:
    """One value as it was found, secrets included; it never leaves these modules unhidden."""

    name: str
    kind: str
    value: Value
    source: str
    origin: str
    line: int = 0
    spelled: str = ""
    override: bool = False


@dataclass
class Findings:
    """What one source says.

    Attributes:
        origin: described, process or container.
        readings: in order; of an option that stands twice, both.
        command: its command line, where it has one.
        complete: kinds of which this source shows all there is, so that what is missing is unset.
        failed: why the source, or a part of it, could not be read.
        notes: what a reader should know about it.
    """

    origin: str
    readings: list[Reading] = field(default_factory=list)
    command: Command = field(default_factory=Command)
    complete: set[str] = field(default_factory=set)
    failed: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def add(self, name: str, kind: str, value: Value, source: str, **more: Any) -> None:
        """Note one value."""
        self.readings.append(Reading(name, kind, value, source, self.origin, **more))


@dataclass(frozen=True)
class Line:
    """A command line and where its words come from: `place(index)` is source and line of one."""

    words: list[str]
    places: list[tuple[str, int]]


def described(deployment: Deployment, flags: set[str]) -> Findings:
    """What sleuth.yaml and the model's config.json say."""
    found = Findings("described")
    for name, value in deployment.launch.env.items():
        source, line = _where(deployment, "launch", "env", name)
        found.add(name, "env", value, source, line=line)
    words = deployment.launch.args
    places = [_where(deployment, "launch", "args", n) for n in range(len(words))]
    _command(found, Line(words, places), flags)
    for key in ("engine", "endpoint"):
        if value := getattr(deployment, key):
            source, line = _where(deployment, key)
            found.add(key, "platform", value, source, line=line)
    if deployment.gpus is not None:
        source, line = _where(deployment, "gpus")
        gpus: Value = list(deployment.gpus) if isinstance(deployment.gpus, list) else "all"
        found.add("gpus", "platform", gpus, source, line=line)
    _config(found, deployment)
    return found


def _where(deployment: Deployment, *loc: str | int) -> tuple[str, int]:
    place = deployment.where(*loc)
    return place, int(place.rpartition(":")[2])


def _config(found: Findings, deployment: Deployment) -> None:
    path = deployment.model.config
    if path is None:
        return
    try:
        if path.stat().st_size > MAX_BYTES:
            raise ConfigError(f"{path}: over {MAX_BYTES:,} bytes")
        values = model_config(deployment)
        text = path.read_text("utf-8", "replace")
    except (ConfigError, OSError, RecursionError) as error:
        found.failed.append(f"model config: {error}")
        return
    for name, value in flat(values):
        found.add(name, "config", value, f"{path.name}: {name}", line=_line_of(text, name))


def _line_of(text: str, name: str) -> int:
    """Line of a JSON key where it stands once, else 0."""
    key = json.dumps(name.rpartition(".")[2])
    spots = [m.start() for m in re.finditer(re.escape(key) + r"\s*:", text)]
    return text.count("\n", 0, spots[0]) + 1 if len(spots) == 1 else 0


def _command(found: Findings, line: Line, flags: set[str]) -> None:
    """Note what a command line sets: variables, options, and what an option's JSON holds."""
    command = found.command = parse_command(line.words, flags)
    found.notes += [f"{found.origin}: {note}" for note in command.notes]
    for name, text, index in command.env:
        found.add(name, "env", text, line.places[index][0], line=line.places[index][1])
    for option in command.options:
        source, number = line.places[option.index]
        source = f"{source}: {option.spelled}"
        found.add(option.name, "arg", option.value, source, line=number, spelled=option.spelled)
        for key, value in inner(option):
            found.add(f"{option.name}.{key}", "arg", value, source, line=number)
            if option.name in OVERRIDES:
                found.add(key, "config", value, source, line=number, override=True)
    # A console command is followed by its subcommand, then by the model.
    rest = command.positionals if not command.module else []
    for name, (word, index) in zip(("command", "model"), rest, strict=False):
        source, number = line.places[index]
        found.add(name, "arg", word, source, line=number)


def process(pid: int, flags: set[str], proc: Path = Path("/proc")) -> Findings:
    """What the kernel tells of a running process.

    Its environment and command line are those of its start; what it changed since is not seen.
    """
    found = Findings("process")
    home = proc / str(pid)
    try:
        state = _stat(home)
    except OSError as error:
        found.failed.append(f"process {pid}: {_reason(error)}")
        return found
    if state[0] in "ZX":
        found.failed.append(f"process {pid}: has ended (a zombie), so nothing can be read of it")
        return found
    raw = _read(found, home / "cmdline")
    if raw == b"" and not (home / "exe").exists():
        found.failed.append(f"process {pid}: no command line (a kernel thread, or it has just ended)")
        return found
    _process_facts(found, home, pid, state)
    _process_env(found, home)
    if raw:
        _process_command(found, home, raw, flags)
    return found


def _stat(home: Path) -> list[str]:
    """Fields of /proc/PID/stat from the state on; the name before them may hold anything."""
    return (home / "stat").read_text("utf-8", "replace").rpartition(")")[2].split()


def _reason(error: OSError) -> str:
    if isinstance(error, FileNotFoundError | ProcessLookupError):
        return "no such process (it has ended, or runs in another container)"
    if isinstance(error, PermissionError):
        return "permission denied: run sleuth as the same user, or as root"
    return error.strerror or type(error).__name__


def _read(found: Findings, path: Path) -> bytes | None:
    try:
        with path.open("rb") as stream:
            return stream.read(MAX_BYTES)
    except OSError as error:
        found.failed.append(f"{path}: {_reason(error)}")
        return None


def _process_facts(found: Findings, home: Path, pid: int, state: list[str]) -> None:
    found.add("process.pid", "platform", pid, str(home))
    for name in ("exe", "cwd"):
        try:
            link = os.fsencode((home / name).readlink())
        except OSError as error:
            found.failed.append(f"{home / name}: {_reason(error)}")
        else:
            found.add(f"process.{name}", "platform", _text(link), f"{home / name}")
    booted = re.search(r"^btime (\d+)", (home.parent / "stat").read_text(), re.MULTILINE)
    if booted:
        # Field 22 of stat (19 here, from the state on): clock ticks since the machine started.
        seconds = int(booted[1]) + int(state[19]) / os.sysconf("SC_CLK_TCK")
        started = datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")
        found.add("process.started", "platform", started, f"{home / 'stat'}")
    for kind, library in sorted(_accelerators(home).items()):
        found.add("process.accelerator", "platform", kind, f"{home / 'maps'}: {library}")


def _accelerators(home: Path) -> dict[str, str]:
    """Kinds of accelerator whose runtime is loaded, with the library that shows it."""
    try:
        maps = (home / "maps").read_bytes()
    except OSError:
        return {}
    found = {}
    for library, kind in ACCELERATORS.items():
        if match := re.search(re.escape(library).encode() + rb"[.\d]*", maps):
            found[kind] = match[0].decode()
    return found


def _process_env(found: Findings, home: Path) -> None:
    raw = _read(found, home / "environ")
    if raw is None:
        return
    entries = [e for e in raw.split(b"\0") if e]
    broken = sum(b"=" not in e for e in entries)
    if broken:
        found.notes.append(f"{home / 'environ'}: {broken} entries hold no value; it was overwritten")
    else:
        found.complete.add("env")
    for entry in entries:
        name, equals, value = entry.partition(b"=")
        if equals:
            found.add(_text(name), "env", _text(value), str(home / "environ"))


def _process_command(found: Findings, home: Path, raw: bytes, flags: set[str]) -> None:
    words = [_text(w) for w in raw.removesuffix(b"\0").split(b"\0")]
    source = str(home / "cmdline")
    _command(found, Line(words, [(source, 0)] * len(words)), flags)
    if found.command.options:
        found.complete.add("arg")
    else:
        parent = f"; its parent is {_stat(home)[1]}" if len(list(filter(None, words))) == 1 else ""
        found.notes.append(f"{source} holds no options: a launcher, or a worker under a title of its own{parent}")


def container(path: Path, flags: set[str]) -> Findings:
    """What `docker inspect` or `podman inspect` printed."""
    found = Findings("container")
    try:
        if path.stat().st_size > MAX_BYTES:
            raise ValueError(f"over {MAX_BYTES:,} bytes")
        value = json.loads(path.read_bytes())
        items = value if isinstance(value, list) else [value]
        if not items or not isinstance(items[0], dict) or not isinstance(items[0].get("Config"), dict):
            raise ValueError("no object with a `Config`, as `docker inspect NAME` prints it")
    except (OSError, ValueError, RecursionError) as error:
        found.failed.append(f"{path.name}: {error}")
        return found
    if len(items) > 1:
        found.notes.append(f"{path.name} describes {len(items)} containers; only the first is read")
    _container(found, path.name, items[0], flags)
    return found


def _container(found: Findings, file: str, item: dict[str, Any], flags: set[str]) -> None:
    config = item["Config"]
    for number, entry in enumerate(_strings(config.get("Env"))):
        name, equals, value = entry.partition("=")
        if equals:
            found.add(name, "env", value, f"{file}: Config.Env[{number}]")
    entrypoint, cmd = (_strings(config.get(k)) for k in ("Entrypoint", "Cmd"))
    places = [(f"{file}: Config.Entrypoint[{n}]", 0) for n in range(len(entrypoint))]
    places += [(f"{file}: Config.Cmd[{n}]", 0) for n in range(len(cmd))]
    words = entrypoint + cmd
    if isinstance(item.get("Path"), str) and (args := _strings(item.get("Args"))):
        words = [item["Path"], *args]
        places = [(f"{file}: Path", 0), *((f"{file}: Args[{n}]", 0) for n in range(len(args)))]
    _command(found, Line(words, places), flags)
    _container_facts(found, file, item)


def _strings(value: Any) -> list[str]:
    """A list of strings; docker writes null for none, and podman one string for a list of one."""
    items = value if isinstance(value, list) else [value] if value else []
    return [v for v in items if isinstance(v, str)]


def _container_facts(found: Findings, file: str, item: dict[str, Any]) -> None:
    config, host = item["Config"], item.get("HostConfig") or {}
    state = item.get("State") or {}
    tags = _strings(item.get("RepoTags"))
    facts = {
        "image": (
            "Config.Image",
            config.get("Image") or item.get("ImageName") or (tags or [""])[0],
        ),
        "image_id": ("Image", item.get("Image")),
        "name": ("Name", item.get("Name")),
        "runtime": ("HostConfig.Runtime", host.get("Runtime")),
        "status": ("State.Status", state.get("Status")),
        "pid": ("State.Pid", state.get("Pid")),
    }
    for name, (place, value) in facts.items():
        if value and isinstance(value, str | int):
            found.add(f"container.{name}", "platform", value, f"{file}: {place}")
    for number, request in enumerate(host.get("DeviceRequests") or []):
        if isinstance(request, dict):
            place = f"{file}: HostConfig.DeviceRequests[{number}]"
            found.add("container.gpus", "platform", _gpus(request), place)
    devices = [d.get("PathOnHost") for d in host.get("Devices") or [] if isinstance(d, dict)]
    if devices:
        found.add("container.devices", "platform", devices, f"{file}: HostConfig.Devices")


def _gpus(request: dict[str, Any]) -> Value:
    """`all`, a count, or the list of device ids asked for."""
    ids = _strings(request.get("DeviceIDs"))
    count = request.get("Count")
    return list(ids) if ids else "all" if count == -1 else count if isinstance(count, int) else None


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "backslashreplace")


def options_typed(sources: list[Findings]) -> Iterator[str]:
    """Every option name as typed, also with a `no_` taken off by the reader."""
    for source in sources:
        for option in source.command.options:
            yield from {option.name, option.spelled.lstrip("-").replace("-", "_")}
