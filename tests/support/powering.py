"""Helpers of the tests of power counting's inside script."""

import json
import textwrap
from pathlib import Path
from typing import Any

from sleuth.tools.inside import power_count

from .tracing import grow

HEAD = """\
import torch
import torch.nn.functional as F
from torch import nn


class Moe(nn.Module):
    def __init__(self, config, layer_id: int):
        super().__init__()
        self.config = config
        self.factor = config.factor
        self.experts = config.experts

    def shared(self, x):
        return self.config.shared_experts(x)

"""


def count(root: Path, files: dict[str, str] | str, entry: str = "moe.py:Moe.forward", **more: Any) -> dict[str, Any]:
    """Count `factor` in a small tree; the reply must survive JSON."""
    grow(root, {"moe.py": files} if isinstance(files, str) else files)
    path, _, symbol = entry.partition(":")
    request = {"root": str(root), "factor": "factor", "entry": {"path": path, "symbol": symbol}, **more}
    reply = power_count.run(request)
    assert json.loads(json.dumps(reply)) == reply
    return reply


def moe(body: str, before: str = "") -> str:
    """A module whose `forward(self, x, logits)` has this body."""
    method = textwrap.indent("def forward(self, x: torch.Tensor, logits: torch.Tensor):\n", "    ")
    return before + HEAD + method + textwrap.indent(textwrap.dedent(body).strip("\n"), " " * 8) + "\n"


def outcomes(reply: dict[str, Any]) -> list[Any]:
    """Each world's count; what it raises, or "?" where there is none."""
    return [
        world["count"] if world["count"] is not None else world["raises"].partition(" ")[0] or "?"
        for world in reply["worlds"]
    ]


def table(reply: dict[str, Any]) -> dict[str, Any]:
    """Outcome by conditions, spelled `a is true and b is false`."""
    keys = [" and ".join(f"{one['guard']} is {one['is']}" for one in world["when"]) for world in reply["worlds"]]
    return dict(zip(keys, outcomes(reply), strict=True))


def kinds(reply: dict[str, Any]) -> list[str]:
    """Kinds of the applications met in the first world."""
    return [reply["sites"][number]["kind"] for number in reply["worlds"][0]["sites"]]
