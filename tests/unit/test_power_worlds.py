"""Power counting: modules that run lazily, facts, questions and how worlds are told apart."""

from __future__ import annotations

from pathlib import Path

import pytest

from sleuth.tools.inside.fail import InsideError

from ..support.powering import count, moe, outcomes, table


class TestModules:
    def test_names_from_everywhere(self, tmp_path: Path) -> None:
        files = {
            "pkg/__init__.py": "from .base import *\n",
            "pkg/base.py": "from __future__ import annotations\nimport math\n\ndef scaled(x, f):\n    return x * f\n",
            "pkg/late.py": "from pkg import scaled\n\nONE = helper()\n\ndef helper():\n    return 1\n",
            "pkg/moe.py": """\
                from __future__ import annotations
                from typing import TYPE_CHECKING
                from dataclasses import dataclass
                import functools
                import pkg.base as b
                from . import scaled as s
                from .base import scaled
                import flash_attn.missing
                if TYPE_CHECKING:
                    from nowhere import Config

                try:
                    import fast_kernels
                except ImportError:
                    fast_kernels = None

                @dataclass
                class Settings:
                    scale: float
                    flag: bool = False

                @functools.lru_cache(maxsize=None)
                def answer():
                    return 42

                class Scaler:
                    def __call__(self, x, f):
                        return scaled(b.scaled(x, f), 1.0)

                def run(x, factor: float):
                    settings = Settings(factor)
                    assert answer() == 42
                    return Scaler()(x, settings.scale)
                """,
        }
        assert outcomes(count(tmp_path, files, "pkg/moe.py:run")) == [1]

    def test_only_what_is_used_runs(self, tmp_path: Path) -> None:
        source = "BROKEN = 1 / 0\n\ndef run(x, factor):\n    return x * factor\n"
        assert outcomes(count(tmp_path, source, "moe.py:run")) == [1]

    def test_registration_by_import(self, tmp_path: Path) -> None:
        files = {
            "pool.py": """\
                POOL = {}

                def register(name):
                    def keep(function):
                        POOL[name] = function
                        return function
                    return keep

                def find(name):
                    return POOL.get(name)
                """,
            "fused.py": """\
                from pool import register

                @register("fused")
                def fused(x, factor):
                    return x * factor
                """,
            "moe.py": """\
                from pool import find
                import fused

                def run(x, factor):
                    function = find("fused")
                    return function(x, factor) if function is not None else x
                """,
        }
        assert outcomes(count(tmp_path, files, "moe.py:run")) == [1]

    def test_custom_operators_run_the_function_registered(self, tmp_path: Path) -> None:
        source = """\
            import torch

            lib = torch.library.Library("mine", "FRAGMENT")

            def scale_(x, f):
                x.mul_(f)

            lib.define("scale_(Tensor x, float f) -> ()")
            lib.impl("scale_", scale_, "CUDA")

            @torch.compile(dynamic=True)
            def run(x: torch.Tensor, factor):
                torch.ops.mine.scale_(x, factor)
                return x
            """
        assert outcomes(count(tmp_path, source, "moe.py:run")) in ([1], ["?"])

    def test_a_file_that_is_not_python(self, tmp_path: Path) -> None:
        with pytest.raises(InsideError, match="isn't Python"):
            count(tmp_path, "def (", "moe.py:run")

    def test_no_such_name(self, tmp_path: Path) -> None:
        with pytest.raises(InsideError, match="defines no other"):
            count(tmp_path, "def run(x): pass\n", "moe.py:other")


WRAPPED = """\
class Base:
    def __init__(self, config):
        self.config = config

    def apply(self, x):
        return x


class Fused(Base):
    pass


class Wrapper(Base):
    pass


def helper(method, y, factor):
    return y * factor if isinstance(method, Fused) else y


"""


class TestGuards:
    def test_conditions_are_the_fewest(self, tmp_path: Path) -> None:
        body = """
            if self.config.noise:
                y = x + 1
            else:
                y = x
            if self.config.a:
                y = y * self.factor
                if self.config.b:
                    y = y * self.factor
            return y
            """
        assert table(count(tmp_path, moe(body))) == {
            "config.a is true and config.b is true": 2,
            "config.a is true and config.b is false": 1,
            "config.a is false": 0,
        }

    def test_facts_fix_answers(self, tmp_path: Path) -> None:
        body = "return x * self.factor if self.config.a else x"
        assert outcomes(count(tmp_path, moe(body), facts={"config.a": True})) == [1]
        assert outcomes(count(tmp_path, moe(body), facts={"a": False})) == [0]

    def test_a_platform_is_exactly_one(self, tmp_path: Path) -> None:
        before = """\
import torch

def is_cuda():
    return torch.version.cuda is not None

def is_hip():
    return torch.version.hip is not None

_is_cuda, _is_hip = is_cuda(), is_hip()

"""
        body = "if _is_cuda:\n    x = x * self.factor\nif _is_hip:\n    x = x * self.factor\nreturn x"
        found = outcomes(count(tmp_path, moe(body, before=before)))
        assert set(found) == {0, 1}
        assert outcomes(count(tmp_path, moe(body, before=before), facts={"platform": "hip"})) == [1]

    def test_an_enum_has_one_member(self, tmp_path: Path) -> None:
        before = """\
import enum
from typing import Optional

class Runner(enum.Enum):
    TRITON = "triton"
    CUTLASS = "cutlass"

    def is_triton(self):
        return self == Runner.TRITON

RUNNER: Optional[Runner] = None

def set_runner(value):
    global RUNNER
    RUNNER = value

def get_runner() -> Runner:
    return RUNNER

"""
        body = "if get_runner().is_triton():\n    x = x * self.factor\nif get_runner() == Runner.CUTLASS:\n"
        body += "    x = x * self.factor\nreturn x"
        assert outcomes(count(tmp_path, moe(body, before=before))) == [1]
        fixed = {"get_runner()": "triton"}
        assert outcomes(count(tmp_path, moe(body, before=before), facts=fixed)) == [1]

    def test_a_class_by_fact(self, tmp_path: Path) -> None:
        before = WRAPPED
        source = moe("return helper(self.quant_method, x, self.factor)", before=before)
        source = source.replace("self.experts = config.experts", "self.quant_method = config.get_method()")
        for name, expected in (("Fused", 1), ("Wrapper", 0)):
            assert outcomes(count(tmp_path, source, facts={"type(quant_method)": name})) == [expected]
        assert set(outcomes(count(tmp_path, source))) == {0, 1}

    def test_numbers_agree_with_themselves(self, tmp_path: Path) -> None:
        body = """
            n = self.config.n
            if n > 0:
                x = x * self.factor
            if n == 0:
                x = x * self.factor
            return x
            """
        assert 2 not in outcomes(count(tmp_path, moe(body)))

    def test_an_assertion_at_construction_is_an_outcome(self, tmp_path: Path) -> None:
        source = moe("return x * self.factor")
        source = source.replace(
            "        self.config = config\n",
            "        assert not config.flag, 'not implemented'\n        self.config = config\n",
        )
        reply = count(tmp_path, source)
        line = 1 + source.split("\n").index("        assert not config.flag, 'not implemented'")
        assert table(reply) == {"config.flag is false": 1, "config.flag is true": f"moe.py:{line}"}
        assert any("not implemented" in world["raises"] for world in reply["worlds"])

    def test_trouble_with_stand_ins_is_no_exception_of_the_tree(self, tmp_path: Path) -> None:
        assert outcomes(count(tmp_path, moe("return x * self.factor + None.a"))) == ["?"]

    def test_methods_one_after_the_other(self, tmp_path: Path) -> None:
        source = moe("return x") + (
            "\n    def first(self, state):\n        state.y = self.experts(state.x) * self.factor\n"
            "\n    def last(self, state):\n        state.out = state.pop('y') * self.factor\n"
        )
        assert outcomes(count(tmp_path, source, "moe.py:Moe.first,last")) == [2]
        assert outcomes(count(tmp_path, source, "moe.py:Moe.first")) == [1]

    def test_findings(self, tmp_path: Path) -> None:
        reply = count(tmp_path, moe("return x * self.factor * self.factor if self.config.a else x"))
        assert {(one["kind"], one["count"]) for one in reply["findings"]} == {("twice", 2), ("never", 0)}
        assert {one["when"] for one in reply["findings"]} == {"config.a is true", "config.a is false"}
