"""Facts reach guards of every form: numbers, None, constants, the environment, choices, classes by what holds them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.unit.exactly_once.test_static import counts, table, tables

SCALED = "y = self.experts(x, topk_weights)\nif {test}:\n    y = y * f\nreturn y"
CONFIG = "import os\nfrom settings import envs, get_bool_env_var\nconfig = x.config\n"


@pytest.mark.parametrize(
    ("test", "fact", "value", "count"),
    [
        ("config.n_group > 10", "n_group", "12", 1),
        ("config.n_group > 10", "n_group", "10", 0),
        ("config.n_group == 10", "config.n_group", "10", 1),
        ("10 <= config.n_group", "n_group", "9", 0),
        ("config.first_layer < config.last_layer", "first_layer", "3", None),
        ("config.n_group is None", "n_group", "none", 1),
        ("config.n_group is None", "n_group", "12", 0),
        ("config.n_group is not None", "n_group", "12", 1),
        ("config.scoring == 'sigmoid'", "scoring", "sigmoid", 1),
        ("config.scoring == 'sigmoid'", "scoring", "softmax", 0),
        ("config.scoring in ('a', 'b')", "scoring", "b", 1),
        ("config.scoring in ('a', 'b')", "scoring", "c", 0),
        ("config.fused", "fused", "1", 1),
        ("config.fused", "fused", "false", 0),
        ("config.path", "path", "/somewhere", 1),
        ("envs.FAST_PATH.get()", "FAST_PATH", "true", 1),
        ("envs.FAST_PATH.get()", "env.FAST_PATH", "0", 0),
        ("os.environ.get('FAST_PATH', '0') == '1'", "FAST_PATH", "1", 1),
        ("os.environ.get('FAST_PATH', '0') == '1'", "FAST_PATH", "false", 0),
        ("os.environ.get('FAST_PATH', '0') == '1'", "env.FAST_PATH", "true", 0),
        ("os.environ.get('FAST_PATH', 'no').lower() == 'yes'", "FAST_PATH", "YES", 1),
        ("get_bool_env_var('FAST_PATH', 'false')", "FAST_PATH", "1", 1),
        ("get_bool_env_var('FAST_PATH', 'false')", "env.FAST_PATH", "off", 0),
    ],
)
def test_a_fact_decides(tmp_path: Path, test: str, fact: str, value: str, count: int | None) -> None:
    body = CONFIG + SCALED.format(test=test)
    found = table(tmp_path, body, facts={fact: value})
    assert counts(found) == ({0, 1} if count is None else {count})
    assert found["facts_used"] == ([] if count is None else [fact])


@pytest.mark.parametrize(
    ("test", "fact", "value"),
    [
        ("x.layer.num_experts > 10", "num_experts", "12"),
        ("config.n_group > 10", "n_group", "many"),
        ("os.environ.get('FAST_PATH')", "FAST_PATH", "false"),
        ("config.backend", "backend", "none"),
    ],
)
def test_what_could_be_read_otherwise_stays_open(tmp_path: Path, test: str, fact: str, value: str) -> None:
    found = table(tmp_path, CONFIG + SCALED.format(test=test), facts={fact: value})
    assert counts(found) == {0, 1}
    assert found["facts_used"] == []


def test_two_numbers_that_are_known_are_compared(tmp_path: Path) -> None:
    body = CONFIG + SCALED.format(test="config.first_layer < config.last_layer")
    assert counts(table(tmp_path, body, facts={"first_layer": "3", "last_layer": "1"})) == {0}
    assert counts(table(tmp_path, body, facts={"first_layer": "1", "last_layer": "3"})) == {1}


BACKENDS = """
import torch
from torch import nn
from enum import Enum

class Predicates:
    def is_fast(self):
        return self.value == Backend.FAST.value

class Backend(Predicates, Enum):
    SLOW = "slow"
    FAST = "fast-one"

class Other(Predicates):
    pass

BackendLike = Backend | Other
_STATE = None

def publish(state):
    global _STATE
    _STATE = state

def get_moe_backend() -> BackendLike:
    flags = _STATE.flags.moe
    if flags.kind is None:
        flags.kind = Backend.SLOW
    return flags.kind

class Experts(nn.Module):
    def forward(self, x, topk_weights):
        return x * topk_weights

class Block(nn.Module):
    def __init__(self, config):
        self.routed_scaling_factor = config.routed_scaling_factor
        self.experts = Experts()

    def forward(self, x):
        topk_weights, topk_ids = torch.topk(x, 2)
        y = self.experts(x, topk_weights)
        if get_moe_backend().is_fast():
            y = y * self.routed_scaling_factor
        return y
"""


@pytest.mark.parametrize(("value", "count"), [("fast-one", 1), ("fast", 1), ("slow", 0)])
@pytest.mark.parametrize("fact", ["moe_backend", "moe_kind", "kind"])
def test_what_a_getter_gives_goes_by_the_getters_name(tmp_path: Path, fact: str, value: str, count: int) -> None:
    (tmp_path / "model.py").write_text(BACKENDS)
    (found,) = tables(tmp_path, entry="model.py::Block.forward", facts={fact: value})
    assert counts(found) == {count}
    assert found["facts_used"] == [fact]


METHODS = """
import torch
from torch import nn
from abc import ABC, abstractmethod
from typing import Optional

class MethodBase(ABC):
    @abstractmethod
    def apply(self, layer, x, topk_weights): ...

class ExpertsMethodBase(MethodBase):
    @abstractmethod
    def apply(self, layer, x, topk_weights): ...

class QuantConfig(ABC):
    @abstractmethod
    def get_name(self) -> str: ...

    @abstractmethod
    def get_method(self, layer) -> Optional[MethodBase]: ...

class NoMethod(ExpertsMethodBase):
    def apply(self, layer, x, topk_weights):
        return x * topk_weights

class OnceMethod(ExpertsMethodBase):
    def apply(self, layer, x, topk_weights):
        return x * topk_weights * layer.routed_scaling_factor

class TwiceMethod(ExpertsMethodBase):
    fused = True

    def apply(self, layer, x, topk_weights):
        return x * topk_weights * layer.routed_scaling_factor * layer.routed_scaling_factor

class OnceConfig(QuantConfig):
    def get_name(self) -> str:
        return "mx" if self.mx else "once"

    def get_method(self, layer) -> Optional[MethodBase]:
        return OnceMethod()

class TwiceConfig(QuantConfig):
    def get_name(self) -> str:
        return "twice"

    def get_method(self, layer) -> Optional[MethodBase]:
        return TwiceMethod()

class TwinConfig(TwiceConfig):
    def get_name(self) -> str:
        return "twice"

LISTED = {"once": OnceConfig, "twice": TwiceConfig}

def merged(base_method):
    return base_method

class Layer(nn.Module):
    def __init__(self, routed_scaling_factor, quant_config: Optional[QuantConfig] = None):
        self.routed_scaling_factor = routed_scaling_factor
        self.quant_method = None
        if quant_config is not None:
            self.quant_method = quant_config.get_method(self)
        if self.quant_method is None:
            self.quant_method = NoMethod()
        self.method = merged(base_method=self.quant_method)

    def forward(self, x, topk_weights):
        y = self.method.apply(self, x, topk_weights)
        if getattr(self.method, "fused", False):
            return y
        return y

class Block(nn.Module):
    def __init__(self, config, quant_config: Optional[QuantConfig] = None):
        self.routed_scaling_factor = config.routed_scaling_factor
        self.layer = Layer(config.routed_scaling_factor, quant_config)

    def forward(self, x):
        topk_weights, topk_ids = torch.topk(x, 2)
        return self.layer(x, topk_weights)
"""
"""More classes than are followed together stand below `MethodBase`: only a fact tells which one it is."""
MANY = "\n".join(
    f"class Many{n}(MethodBase):\n    def apply(self, layer, x, topk_weights):\n        return x\n" for n in range(80)
)


@pytest.mark.parametrize(
    ("facts", "count"),
    [
        ({"quant_method": "OnceMethod"}, 1),
        ({"quant_method": "TwiceMethod"}, 2),
        ({"quant_config": "OnceConfig"}, 1),
        ({"quant_config": "TwiceConfig"}, 2),
        ({"quant": "once"}, 1),
        ({"quant": "mx"}, 1),
        ({"quant": "twice"}, 2),
    ],
)
def test_a_class_is_known_by_what_holds_it_or_by_its_flag(tmp_path: Path, facts: dict[str, str], count: int) -> None:
    (tmp_path / "model.py").write_text(METHODS + MANY)
    (found,) = tables(tmp_path, entry="model.py::Block.forward", facts=facts)
    told = counts(found) - ({0} if "quant_method" not in facts else set())
    assert told == {count}, [(w["count"], w["text"], w["unknown"]) for w in found["worlds"]]
    assert found["facts_used"] == sorted(facts)


def test_a_flag_that_no_class_goes_by_tells_nothing(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text(METHODS)
    found: list[dict[str, Any]] = tables(tmp_path, entry="model.py::Block.forward", facts={"quant": "other"})
    assert not any("quant" in t["facts_used"] for t in found)
