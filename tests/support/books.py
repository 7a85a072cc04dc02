"""Playbooks as Python values, written to YAML files for a test."""

from pathlib import Path
from typing import Any

import yaml

from sleuth.playbooks import loader
from sleuth.sandbox.errors import ConfigError

Part = dict[str, Any]


def step(ident: str, *outcomes: Part, tool: str = "grep", **more: Any) -> Part:
    """A step that greps for `x` and whose outcomes are `outcomes`, by default one neutral."""
    args = {"pattern": "x"} if tool == "grep" else {"path": "a.py"}
    return {
        "id": ident,
        "question": f"{ident}?",
        "tool": tool,
        "args": args,
        "outcomes": list(outcomes) or [rule()],
        **more,
    }


def rule(when: str = "true", bearing: str = "neutral", **more: Any) -> Part:
    """One outcome."""
    return {"when": when, "bearing": bearing, "note": "noted", **more}


def book(*steps: Part, **more: Any) -> Part:
    """A playbook called `p` with one hypothesis `h`, which rests on the assumption `a`."""
    hypothesis = {
        "id": "h",
        "claim": "It is so.",
        "refuted_by": "It isn't.",
        "assumptions": [{"id": "a", "text": "A."}],
    }
    head = {"playbook": 1, "name": "p", "title": "T", "about": "A", "hypotheses": [hypothesis]}
    return {**head, **more, "steps": list(steps) or [step("s1")]}


def bare_book(*steps: Part) -> Part:
    """A playbook whose one hypothesis rests on no assumption."""
    return book(*steps, hypotheses=[{"id": "h", "claim": "C", "refuted_by": "R"}])


def write(folder: Path, content: Part, name: str = "") -> Path:
    """Write a playbook as `<name>.yaml`, one key a line."""
    path = folder / f"{name or content.get('name', 'p')}.yaml"
    path.write_text(yaml.safe_dump(content, sort_keys=False), encoding="utf-8")
    return path


def problems(folder: Path, content: Part, name: str = "") -> list[str]:
    """What the loader says of a playbook, as `LINE: the line's text: KEY: problem`; empty when it may be used."""
    path = write(folder, content, name)
    lines = path.read_text(encoding="utf-8").splitlines()
    try:
        loader.read(path)
    except ConfigError as error:
        return [_with_source(said.removeprefix(str(path)), lines) for said in str(error).splitlines()]
    return []


def _with_source(said: str, lines: list[str]) -> str:
    _, number, rest = said.split(":", 2)
    return f"{lines[int(number) - 1].strip()} |{rest}"
