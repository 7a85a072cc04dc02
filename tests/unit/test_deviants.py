"""Places that use a factor unlike their siblings: one small tree for each comparison, with the defect and without."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

import pytest

from sleuth.tools.inside.fail import InsideError
from sleuth.tools.inside.trace_factor import run

BLOCK = """
from device import is_cuda, is_hip, env_flag
from routers import HashRouter, Router
from wrap import Wrapper

_is_cuda = is_cuda()
_is_hip = is_hip()
_use_fast = env_flag("FAST") and _is_hip

class Block:
    def __init__(self, config, experts):
        self.gain = config.gain
        self.experts = experts
        self.router = Router(gain=self.gain, apply_gain=self.experts.fuse_gain)
        self.hashed = {hashed}

    def forward(self, x):
        y = self.experts(x, self.router(x))
        if {forward}:
            y *= self.gain
        return y

    def forward_overlap(self, x):
        y = self.experts(x, self.router(x))
        if {overlap}:
            y *= self.gain
        return y
"""
ROUTERS = """
from device import env_flag, is_hip

_use_fast = env_flag("FAST") and is_hip()

class Router:
    def __init__(self, gain, apply_gain):
        self.gain, self.apply_gain = gain, apply_gain

    def __call__(self, x):
        return x * self.gain if self.apply_gain or _use_fast else x
"""
HASHED = """
class HashRouter:
    def __init__(self, gain, apply_gain):
        self.gain, self.apply_gain = gain, apply_gain

    def __call__(self, x):
        return x * self.gain if self.apply_gain else x
"""


def suspects(root: Path, files: dict[str, str], factor: str = "gain") -> list[tuple[str, str, str]]:
    """The kind, the rule and the function of each suspect."""
    return [(one["kind"], one["rule"], one["symbol"]) for one in found(root, files, factor)["suspects"]]


def found(root: Path, files: dict[str, str], factor: str = "gain") -> dict[str, Any]:
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(textwrap.dedent(text))
    answer: dict[str, Any] = run({"root": str(root), "factor": factor, "tables": False})
    return answer


def block(forward: str, overlap: str, hashed: str = "None") -> dict[str, str]:
    text = BLOCK.format(forward=forward, overlap=overlap, hashed=hashed)
    return {"block.py": text, "routers.py": ROUTERS, "hashed.py": HASHED}


ASKS = "not self.experts.fuse_gain"
FLAG = ("twice", "flag not asked", "Block.forward_overlap")
CLASS = ("never", "class left out", "Block.forward_overlap")
SWITCH = ("never", "switch unknown to the router", "Block.forward")
SPECIAL = "not _is_cuda or isinstance(self.experts.method, Wrapper)"
HASH = "HashRouter(gain=self.gain, apply_gain=self.experts.fuse_gain)"


@pytest.mark.parametrize(
    ("forward", "overlap", "hashed", "expected"),
    [
        (ASKS, "True", "None", [FLAG]),
        (ASKS, "x.shape[0] > 0", "None", [FLAG]),
        (ASKS, ASKS, "None", []),
        (ASKS, "not _is_cuda", "None", []),
        (ASKS, "x.is_first and not self.experts.fuse_gain", "None", []),
        (SPECIAL, "not _is_cuda", "None", [CLASS]),
        (SPECIAL, SPECIAL, "None", []),
        (SPECIAL, "True", "None", []),
        ("not _use_fast", "not _use_fast", HASH, [SWITCH]),
        ("not _use_fast", "not _use_fast", "None", []),
        ("not (_use_fast and self.experts.fuse_gain)", "not (_use_fast and self.experts.fuse_gain)", HASH, []),
    ],
)
def test_methods_that_finish_the_same_work(
    tmp_path: Path, forward: str, overlap: str, hashed: str, expected: list[tuple[str, str, str]]
) -> None:
    assert suspects(tmp_path, block(forward, overlap, hashed)) == expected


def test_a_helper_is_read_in_its_callers_terms(tmp_path: Path) -> None:
    text = """
    from helper import finish

    class Block:
        def __init__(self, config, experts):
            self.gain = config.gain
            self.experts = experts
            self.router = Router(gain=self.gain, apply_gain=self.experts.fuse_gain)

        def forward(self, x):
            return finish(self.experts(x), {told}, self.gain)

        def forward_overlap(self, x):
            y = self.experts(x)
            return y if self.experts.fuse_gain else y * self.gain
    """
    helper = """
    def finish(y, done, gain):
        skip = bool(done)
        return y if skip else y.mul_(gain)
    """
    assert suspects(tmp_path, {"b.py": text.format(told="self.experts.fuse_gain"), "helper.py": helper}) == []
    told = {"b.py": text.format(told="False"), "helper.py": helper}
    assert suspects(tmp_path, told) == [("twice", "flag not asked", "Block.forward")]


LAYER = """
from methods import Method

class Layer:
    def __init__(self, method, gain):
        self.fuse_gain = isinstance(method, Method){more}
"""
METHODS = """
from infos import BetaInfo, GammaInfo, AlphaInfo, Config

class Method(Base):
    def apply(self, layer, dispatch_output):
        if backend().is_beta():
            return self.runner.run(dispatch_output, {info}(layer.w))
        if backend().is_gamma():
            return self.runner.run(dispatch_output, GammaInfo(layer.w))
        return self.runner.run(dispatch_output, GammaInfo(layer.v))

class Other(Base):
    def apply(self, layer, dispatch_output):
        if backend().is_beta():
            y = kernel(dispatch_output.x, dispatch_output.topk_weights)
            {finish}
            return Combined(y)
        if backend().is_gamma():
            return self.runner.run(dispatch_output, AlphaInfo(layer.v))
        return self.runner.run(dispatch_output, AlphaInfo(layer.w))
"""
INFOS = """
def run_alpha(x, info: AlphaInfo, config):
    return x * config.gain

def run_beta(x, info: BetaInfo, config):
    return x * config.gain
"""
FORGOTTEN = ("twice", "backend forgotten", "Layer.__init__")
WITHOUT = ("never", "branch without it", "Other.apply")
FINISH = "y.mul_(self.config.gain)"


@pytest.mark.parametrize(
    ("more", "info", "finish", "expected"),
    [
        ("", "BetaInfo", FINISH, [FORGOTTEN]),
        (" and not backend().is_beta()", "BetaInfo", FINISH, []),
        ("", "GammaInfo", FINISH, []),
        ("", "GammaInfo", "pass", [WITHOUT]),
        (" or isinstance(method, Other)", "GammaInfo", "pass", [FORGOTTEN]),
    ],
)
def test_flags_and_the_kernels_that_classes_choose(
    tmp_path: Path, more: str, info: str, finish: str, expected: list[tuple[str, str, str]]
) -> None:
    files = {
        "layer.py": LAYER.format(more=more),
        "methods.py": METHODS.format(info=info, finish=finish),
        "infos.py": INFOS,
    }
    assert suspects(tmp_path, files) == expected


WRAP = """
from dataclasses import replace

class Wrapper:
    def make_runner(self, layer, config):
        self.config = config
        {handed}

class Inner:
    def make_runner(self, layer, config):
        self.config = config

    def apply(self, layer, x):
        gain = {read}.gain
        x.mul_(gain)
        return x

class Model:
    def __init__(self, config):
        self.gain = config.gain

    def forward(self, x):
        y = self.experts(x)
        if isinstance(self.experts.method, Wrapper):
            y *= self.gain
        return y
"""
UNCHANGED = ("twice", "handed on unchanged", "Wrapper.make_runner")
ANOTHERS = ("twice", "asks another's configuration", "Inner.apply")
SAME = "self.inner.make_runner(layer, config)"
TAKEN_OUT = "self.inner.make_runner(layer, replace(config, gain=None))"


@pytest.mark.parametrize(
    ("handed", "read", "expected"),
    [
        (SAME, "self.config", [UNCHANGED]),
        (TAKEN_OUT, "self.config", []),
        (TAKEN_OUT, "layer.config", [ANOTHERS]),
        ("pass", "layer.config", []),
    ],
)
def test_wrappers_and_what_they_wrap(
    tmp_path: Path, handed: str, read: str, expected: list[tuple[str, str, str]]
) -> None:
    assert suspects(tmp_path, {"wrap.py": WRAP.format(handed=handed, read=read)}) == expected


@pytest.mark.parametrize(
    ("body", "flagged"),
    [
        ("if not self.renormalize:\n    w = w * self.gain", True),
        ("if not self.renormalize or self.method == 'b':\n    w = w * self.gain", False),
        ("if self.renormalize:\n    w = w / w.sum()\nelse:\n    w = w * self.gain", False),
        ("if self.renormalize:\n    w = w / w.sum()\nif not self.renormalize:\n    w = w * self.gain", False),
        ("if self.renormalize:\n    w = w / w.sum()\nw = w * self.gain", False),
        ("w = kernel(w, gain=1 if self.renormalize else self.gain)", True),
        ("w = kernel(w, gain=self.gain if self.apply_gain else 1)", False),
        ("w = kernel(w, renormalize=self.renormalize, gain=self.gain)", False),
    ],
)
def test_a_flag_about_normalisation(tmp_path: Path, body: str, flagged: bool) -> None:
    lines = textwrap.indent(body, " " * 8)
    head = (
        "class Gate:\n    def __init__(self, config):\n        self.gain = config.gain\n\n    def forward(self, w):\n"
    )
    expected = [("never", "unrelated flag", "Gate.forward")] if flagged else []
    assert suspects(tmp_path, {"gate.py": f"{head}{lines}\n        return w\n"}) == expected


@pytest.mark.parametrize(("test", "flagged"), [("True", True), ("self.data_type == float8", False)])
def test_a_scale_that_belongs_to_storage(tmp_path: Path, test: str, flagged: bool) -> None:
    text = f"""
    class Attention:
        def decode(self, layer, x):
            k_scale = 1.0
            if {test}:
                k_scale = layer.k_scale_float
            return x * k_scale * layer.scaling

        def extend(self, layer, x):
            k_scale = 1.0
            if self.data_type == float8:
                x, k_scale = quantize(x, layer)
            return x * k_scale * layer.scaling
    """
    expected = [("wrong", "storage not asked", "Attention.decode")] if flagged else []
    assert suspects(tmp_path, {"attention.py": text}, "k_scale") == expected


@pytest.mark.parametrize(("keys", "flagged"), [('"a", "b"', True), ('"a", "b", "mscale"', False)])
def test_a_key_that_only_a_sibling_passes_on(tmp_path: Path, keys: str, flagged: bool) -> None:
    text = f"""
    def make(config):
        if config["type"] == "plain":
            more = {{k: v for k, v in config.items() if k in ({keys})}}
            return Plain(**more)
        more = {{k: v for k, v in config.items() if k in ("a", "b", "mscale")}}
        return Deep(**more)

    class Plain:
        def __init__(self, a, b):
            self.mscale = a * b

    class Deep:
        def __init__(self, a, b, mscale):
            self.mscale = mscale
    """
    expected = [("wrong", "key dropped", "Plain.__init__")] if flagged else []
    assert suspects(tmp_path, {"rope.py": text}, "mscale") == expected


EXPERTS = """
class Experts:
    def __init__(self, size, gain=1.0):
        self.gain = gain

    def forward(self, x):
        return route(x, gain=self.gain)

def route(x, gain):
    return x * gain if gain != 1.0 else x

class Block:
    def __init__(self, config):
        self.gain = config.gain
        self.experts = Experts(4, gain={given})

    def forward(self, x):
        y = self.experts(x)
        {then}
        return y
"""


@pytest.mark.parametrize(
    ("given", "then", "flagged"),
    [
        ("self.gain", "y = self.experts(x) * self.gain", True),
        ("self.gain", "y *= self.gain", True),
        ("1.0", "y *= self.gain", False),
        ("self.gain", "pass", False),
        ("self.gain", "x = x * self.gain", False),
    ],
)
def test_a_factor_that_is_handed_on_and_applied_again(tmp_path: Path, given: str, then: str, flagged: bool) -> None:
    expected = [("twice", "handed on and applied again", "Block.forward")] if flagged else []
    assert suspects(tmp_path, {"block.py": EXPERTS.format(given=given, then=then)}) == expected


def test_what_was_compared_is_told_and_tests_of_the_tree_are_left_out(tmp_path: Path) -> None:
    files = block(ASKS, "True")
    answer = found(tmp_path, files | {"tests/block.py": files["block.py"]})
    assert [one["path"] for one in answer["suspects"]] == ["block.py"]
    assert answer["compared"] == {"block.py": 2, "hashed.py": 1, "routers.py": 1}
    assert [at["note"] for at in answer["suspects"][0]["see"]] == ["told to apply it", "asks"]


def test_a_named_entry_is_followed_and_nothing_is_compared(tmp_path: Path) -> None:
    found(tmp_path, block(ASKS, "True"))
    answer = run({"root": str(tmp_path), "factor": "gain", "entry": "Block.forward"})
    assert answer["tables"]
    assert answer["suspects"] == []


def test_files_that_are_no_python_are_passed_over(tmp_path: Path) -> None:
    assert suspects(tmp_path, block(ASKS, "True") | {"broken.py": "def gain(:\n"}) == [FLAG]


def test_a_factor_that_is_compared_nowhere_is_no_error(tmp_path: Path) -> None:
    answer = found(tmp_path, {"config.py": "gain = 2\n"})
    assert answer["suspects"] == []
    assert answer["compared"] == {}
    with pytest.raises(InsideError, match="no Python file of the tree mentions it"):
        found(tmp_path, {}, "loss")
