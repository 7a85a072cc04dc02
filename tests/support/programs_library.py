"""What generated programs are built on: platform predicates, the runner's enum, helpers; how files are put together."""

from __future__ import annotations

import ast
import functools
import re
import textwrap
from collections.abc import Iterable
from dataclasses import dataclass

from .programs_pick import Pick

PYTHONS_OWN = ("functools", "os")
"""Modules that generated code uses by their names."""


@dataclass(frozen=True)
class Unit:
    """A definition at the top of a file."""

    source: str
    part: str
    """`common`, `topk`, `experts` or `model`: what it belongs to; files hold one or several of these."""
    kept: bool = False
    """Whether it stays although nothing mentions it."""

    @functools.cached_property
    def names(self) -> set[str]:
        """What it defines."""
        return {name for node in ast.parse(self.source).body for name in defined(node)}

    @functools.cached_property
    def uses(self) -> set[str]:
        """Every identifier in it."""
        return set(re.findall(r"\b[A-Za-z_]\w*", self.source))


def defined(node: ast.stmt) -> list[str]:
    if isinstance(node, ast.AnnAssign):
        return [node.target.id] if isinstance(node.target, ast.Name) else []
    if isinstance(node, ast.Assign):
        return [target.id for target in node.targets if isinstance(target, ast.Name)]
    return [node.name] if isinstance(node, ast.ClassDef | ast.FunctionDef) else []


def unit(part: str, source: str, kept: bool = False) -> Unit:
    return Unit(textwrap.dedent(source).strip() + "\n", part, kept)


LIBRARY = [
    unit("common", text)
    for text in (
        "SMALL_BATCH = 256",
        """
        def is_cuda():
            return torch.cuda.is_available() and torch.version.cuda is not None
        """,
        """
        def is_hip():
            return torch.version.hip is not None
        """,
        """
        def get_bool_env_var(name, default="false"):
            return os.environ.get(name, default).lower() in ("true", "1")
        """,
        """
        class RunnerBackend(Enum):
            TRITON = "triton"
            CUTLASS = "cutlass"
            MARLIN = "marlin"

            def is_triton(self):
                return self == RunnerBackend.TRITON

            def is_cutlass(self):
                return self == RunnerBackend.CUTLASS

            def is_marlin(self):
                return self == RunnerBackend.MARLIN
        """,
        """
        def scale_output(x, factor):
            return x * factor
        """,
        """
        def scale_in_place(x, factor):
            x.mul_(factor)
        """,
        """
        def make_scaler(factor):
            def scaler(x):
                return x * factor

            return scaler
        """,
        """
        def scale_if_given(x, factor=None):
            if factor is None:
                return x
            return x * factor
        """,
        """
        def scale_by_options(x, **options):
            return x * options["factor"] * options.get("bias", 1.0)
        """,
        """
        def scaled_pair(x, factor):
            return x * factor, factor
        """,
        """
        class ScaledRecord(NamedTuple):
            value: torch.Tensor
            factor: float
        """,
        """
        def scaled_record(x, factor):
            return ScaledRecord(value=x * factor, factor=factor)
        """,
        """
        def ignore_factor(x, factor=1.0):
            return x.contiguous()
        """,
    )
]
"""The definitions that are in every program as far as it mentions them."""

SETTINGS = (
    """
    _server_args = None


    def set_server_args(server_args):
        global _server_args
        _server_args = server_args


    def get_server_args():
        assert _server_args is not None
        return _server_args


    def get_runner_backend() -> RunnerBackend:
        return RunnerBackend(get_server_args().runner)
    """,
    """
    _server_args = None
    _runner_backend: RunnerBackend | None = None


    def set_server_args(server_args):
        global _server_args, _runner_backend
        _server_args = server_args
        _runner_backend = RunnerBackend(server_args.runner)


    def get_server_args():
        return _server_args


    def get_runner_backend() -> RunnerBackend:
        global _runner_backend
        if _runner_backend is None:
            _runner_backend = RunnerBackend.TRITON
        return _runner_backend
    """,
)
"""Ways to keep what the server was started with; `set_server_args` is called before a model is made."""


def library(pick: Pick) -> list[Unit]:
    """All that every program may mention."""
    return [*LIBRARY, unit("common", pick.one(SETTINGS))]


FLAGS = {
    "_is_cuda": "is_cuda()",
    "_is_hip": "is_hip()",
    "_use_fast": 'get_bool_env_var("ENGINE_FAST")',
}
"""Flags that each file sets for itself when it is loaded."""

FROM_PYTHON = {
    "ABC": "abc",
    "abstractmethod": "abc",
    "Enum": "enum",
    "NamedTuple": "typing",
    "dataclass": "dataclasses",
    "grouped_gemm": "fast_kernels",
    "scaled_moe": "fast_kernels",
    "moe_sum_reduce": "sgl_kernel",
    "moe_fused_gate": "sgl_kernel",
    "nn": "torch",
}
"""Names that generated code imports from outside of the tree."""

LAYOUTS = (
    {"common": "model", "topk": "model", "experts": "model", "model": "model"},
    {"common": "common", "topk": "model", "experts": "model", "model": "model"},
    {"common": "common", "topk": "layers", "experts": "layers", "model": "model"},
    {"common": "common", "topk": "topk", "experts": "experts", "model": "model"},
)
"""Which file each part goes into."""


def tree(units: list[Unit], layout: dict[str, str], relative: bool) -> dict[str, str]:
    """The files of a package `engine`, each with the imports it needs, in an order in which they can be loaded."""
    units = needed(units)
    homes = {name: layout[u.part] for u in units for name in u.names}
    files = {"engine/__init__.py": ""}
    for stem in dict.fromkeys(layout.values()):
        own = [u for u in units if layout[u.part] == stem]
        if own:
            files[f"engine/{stem}.py"] = rendered(stem, own, homes, "." if relative else "engine.")
    return files


def needed(units: list[Unit]) -> list[Unit]:
    """Those that are kept, and whatever they mention, directly or not."""
    wanted: set[str] = set()
    kept: list[Unit] = []
    while len(kept) != len(kept := [u for u in units if u.kept or u.names & wanted]):
        used = {name for u in kept for name in u.uses}
        wanted = used | {name for flag in used & FLAGS.keys() for name in re.findall(r"\w+", FLAGS[flag])}
    return kept


def rendered(stem: str, units: list[Unit], homes: dict[str, str], prefix: str) -> str:
    """One file."""
    used = {name for u in units for name in u.uses}
    flags = [name for name in FLAGS if name in used]
    used |= {name for flag in flags for name in re.findall(r"\w+", FLAGS[flag])}
    lines = [f"import {name}" for name in PYTHONS_OWN if name in used]
    outside = sorted({(FROM_PYTHON[name], name) for name in used & FROM_PYTHON.keys()})
    lines += [f"from {module} import {name}" for module, name in outside if module != "torch"]
    lines += ["import torch"] + ["from torch import nn"] * ("nn" in used)
    away = sorted({(homes[name], name) for name in used & homes.keys() if homes[name] != stem})
    lines += [f"from {prefix}{module} import {name}" for module, name in away]
    return "\n".join([*lines, "", ""]) + "\n\n\n".join(text.rstrip() for text in flagged(units, flags)) + "\n"


def flagged(units: list[Unit], flags: list[str]) -> Iterable[str]:
    """The units, with the flags of the file as soon as what they need is defined."""
    here = [name for u in units for name in u.names]
    pending = dict.fromkeys(flags)
    for u in [None, *units]:
        if u is not None:
            yield u.source
        for flag in list(pending):
            needs = [name for name in re.findall(r"\w+", FLAGS[flag]) if name in here]
            if all(name in (u.names if u else ()) for name in needs):
                del pending[flag]
                yield f"{flag} = {FLAGS[flag]}"
