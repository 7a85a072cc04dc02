"""The truth about a generated program: plain CPython runs it, and the number it returns tells the power of the factor.

Each world runs with two values of the factor, and with a kernel that applies the factor and one that ignores it. The
count is the exponent all of them agree on; no such exponent is `UNDECIDED`: parts of the output are scaled differently,
or it hangs on what a kernel does.
"""

from __future__ import annotations

import ast
import builtins
import contextlib
import functools
import itertools
import math
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from types import CodeType, FrameType, ModuleType, SimpleNamespace
from typing import Any

from . import programs_torch

UNDECIDED = "undecided"
FACTORS = (7.0, 11.0)
KERNEL_POWERS = (0, 1)
EXPECTED_ERRORS = (AssertionError, NotImplementedError, ValueError)
TOKENS = {"few": 8, "many": 4096}

World = dict[str, Any]
"""A value for each guard of a program, by the guard's key."""


@dataclass(frozen=True)
class Program:
    """A source tree, how to run it, and what its maker believes about it."""

    files: dict[str, str]
    entry: str
    """`path::Class.method`."""
    factor: str
    guards: dict[str, tuple[Any, ...]]
    """The values each guard takes, by key."""
    believed: Callable[[World], int | str] = field(repr=False)
    """The count in a world by the maker's own bookkeeping: a number, `UNDECIDED` or `raises`."""
    blind: bool = False
    """Whether something in it can't be seen by reading."""

    def worlds(self) -> Iterator[World]:
        """Every complete assignment of the guards."""
        for values in itertools.product(*self.guards.values()):
            yield dict(zip(self.guards, values, strict=True))

    def __str__(self) -> str:
        return "\n".join(f"# --- {path}\n{source}" for path, source in self.files.items()) + f"# entry: {self.entry}\n"


@dataclass(frozen=True)
class Truth:
    """What one world of a program does."""

    count: int | str
    """The exponent, `UNDECIDED`, or `raises`."""
    where: tuple[str, ...] = ()
    """For `raises`: each `path:line` of the tree on the way to the exception, innermost last."""


def truth(program: Program, world: World, watch: Callable[[FrameType], None] | None = None) -> Truth:
    """Run `program` in `world`; `watch` sees each line of the tree just before it runs, and each return."""
    powers = set()
    asked = any("scaled_moe" in source for source in program.files.values())
    for kernel in KERNEL_POWERS if asked else KERNEL_POWERS[:1]:
        run = Run(program, world, kernel)
        try:
            with watching(program, watch):
                run.load()
                low, high = (run.result(factor) for factor in FACTORS)
        except EXPECTED_ERRORS as error:
            return Truth("raises", tuple(places(program, error)))
        powers.add(exponent(low, high))
    return Truth(powers.pop() if len(powers) == 1 else UNDECIDED)


def exponent(low: float, high: float) -> int | str:
    """The power to which the factor went into both results, if there is one."""
    if low <= 0 or high <= 0:
        return UNDECIDED
    power = math.log(low / high) / math.log(FACTORS[0] / FACTORS[1])
    return round(power) if abs(power - round(power)) < 1e-6 else UNDECIDED


def places(program: Program, error: BaseException) -> Iterator[str]:
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename in program.files:
            yield f"{trace.tb_frame.f_code.co_filename}:{trace.tb_lineno}"
        trace = trace.tb_next


@contextlib.contextmanager
def watching(program: Program, watch: Callable[[FrameType], None] | None) -> Iterator[None]:
    def trace(frame: FrameType, event: str, _: object) -> Any:
        if frame.f_code.co_filename not in program.files:
            return None
        if watch is not None and event in ("line", "return"):
            watch(frame)
        return trace

    before = sys.gettrace()
    if watch is not None:
        sys.settrace(trace)
    try:
        yield
    finally:
        sys.settrace(before)


@functools.lru_cache(maxsize=512)
def compiled(path: str, source: str) -> CodeType:
    return compile(ast.parse(source, path), path, "exec", dont_inherit=True)


class Run:
    """The modules of a program, loaded in one world without a trace in `sys.modules`."""

    def __init__(self, program: Program, world: World, kernel: int) -> None:
        self.program = program
        self.world = world
        self.sources = {dotted(path): path for path in program.files}
        self.modules: dict[str, ModuleType] = programs_torch.build(world.get("platform", "cuda"))
        self.modules["os"] = programs_torch.module("os", environ=self.environment(), path=os.path)
        self.modules |= {"fast_kernels": unknown_kernels(kernel), "sgl_kernel": known_kernels()}

    def environment(self) -> dict[str, str]:
        return {"ENGINE_FAST": "1"} if self.world.get("env") else {}

    def load(self) -> None:
        """Import the modules of the tree, in the order of its files."""
        for name in self.sources:
            self.module(name)

    def module(self, name: str) -> ModuleType:
        """The module called `name`: a stand-in, one of the tree, or Python's own."""
        if name not in self.modules and name in self.sources:
            path = self.sources[name]
            package = name if path.endswith("/__init__.py") else name.rpartition(".")[0]
            self.modules[name] = made = programs_torch.module(name, __package__=package)
            vars(made)["__builtins__"] = {**vars(builtins), "__import__": self.import_}
            exec(compiled(path, self.program.files[path]), vars(made))
        return self.modules[name] if name in self.modules else __import__(name, fromlist=["*"])

    def import_(self, name: str, space: dict[str, Any], _: object, names: tuple[str, ...] = (), level: int = 0) -> Any:
        """What the `import` of a generated module calls."""
        whole = ".".join(filter(None, (space["__package__"], name))) if level else name
        found = self.module(whole)
        for part in names or ():
            if f"{whole}.{part}" in self.sources:
                setattr(found, part, self.module(f"{whole}.{part}"))
        return found if names else self.module(whole.partition(".")[0])

    def find(self, name: str) -> Any:
        """What the tree defines as `name`, wherever that is."""
        spaces = (vars(self.modules[module]) for module in self.sources)
        return next(space[name] for space in spaces if name in space)

    def result(self, factor: float) -> float:
        """The number that the entry returns for this factor: the routed part, since shared experts give 0."""
        symbol = self.program.entry.partition("::")[2]
        name, _, method = symbol.rpartition(".")
        with contextlib.suppress(StopIteration):
            self.find("set_server_args")(self.server_args())
        model = self.find(name)(self.config(factor), self.quant_config())
        if getattr(model, "shared_experts", None) is not None:
            model.shared_experts.weight.set(0.0)
        hidden = programs_torch.Tensor(1.0, (TOKENS[self.world.get("tokens", "few")], 16))
        return float(getattr(model, method)(hidden).value)

    def server_args(self) -> SimpleNamespace:
        return SimpleNamespace(runner=self.world.get("runner", "triton"), enable_overlap=bool(self.world.get("arg")))

    def config(self, factor: float) -> SimpleNamespace:
        shared = self.world.get("shared", 1)
        flags = {"norm_topk_prob": bool(self.world.get("renorm")), "use_hash": bool(self.world.get("hash"))}
        made = SimpleNamespace(num_experts_per_tok=2, n_shared_experts=shared, quant=self.quant().lower(), **flags)
        setattr(made, self.program.factor, factor)
        return made

    def quant(self) -> str:
        """The quantisation's name."""
        return str(self.world.get("quant", "Fp8MoEMethod")).removesuffix("MoEMethod")

    def quant_config(self) -> Any:
        """The tree's own class for it, else a stand-in that makes the quant method."""
        with contextlib.suppress(StopIteration):
            return self.find(self.quant() + "Config")()
        return SimpleNamespace(get_quant_method=lambda layer: self.find(self.quant() + "MoEMethod")())


def dotted(path: str) -> str:
    """The name of the module in a file."""
    return path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def unknown_kernels(power: int) -> ModuleType:
    """A compiled library nobody knows: one kernel never sees a factor, one takes it and may apply it or not."""

    def scaled(x: Any, weights: Any, routed_scaling_factor: float = 1.0) -> Any:
        return x * weights * routed_scaling_factor**power

    return programs_torch.module("fast_kernels", grouped_gemm=lambda x, weights: x * weights, scaled_moe=scaled)


def known_kernels() -> ModuleType:
    """Two kernels of `sgl_kernel` that the sinks data describe."""

    def gate(logits: Any, bias: Any, groups: int, group: int, k: int, shared: int, factor: float, apply: bool) -> Any:
        scores = programs_torch.softmax(logits)
        return (scores * factor if apply else scores), scores.new(0.0)

    def reduce(source: Any, target: Any, factor: float) -> None:
        target.copy_(source * factor)

    return programs_torch.module("sgl_kernel", moe_sum_reduce=reduce, moe_fused_gate=gate)
