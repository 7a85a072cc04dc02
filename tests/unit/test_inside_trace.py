"""The trace of a symbol: where it arrives, along which lines, and what it says about each mention."""

from pathlib import Path
from typing import Any

import pytest

from ..support.tracing import grow, run, spots


def steps(reply: dict[str, Any]) -> list[tuple[str, int, str, str]]:
    return [(h["file"], h["line"], h["via"], h["name"]) for h in reply["chain"]]


MOE = """\
class Moe:
    def __init__(self, config):
        self.factor = config.factor

    def forward(self, x):
        x *= self.factor
        return x
"""


class TestWays:
    def test_aliased_module_import_and_construction(self, tmp_path: Path) -> None:
        grow(
            tmp_path,
            {
                "pkg/__init__.py": "",
                "pkg/models/moe.py": MOE,
                "pkg/models/v4.py": """\
                    import torch
                    import pkg.models.moe as moe


                    class Layer(torch.nn.Module):
                        def __init__(self, config):
                            self.mlp = moe.Moe(config)
                    """,
            },
        )
        reply = run(tmp_path, "factor", "pkg/models/v4.py")
        assert steps(reply) == [
            ("pkg/models/v4.py", 2, "imports", "moe"),
            ("pkg/models/v4.py", 7, "constructs", "Moe"),
        ]
        assert [h["to_file"] for h in reply["chain"]] == ["pkg/models/moe.py", "pkg/models/moe.py"]
        assert reply["chain"][1]["text"] == "self.mlp = moe.Moe(config)"
        assert reply["home"] == "pkg/models/moe.py"
        assert reply["homes"] == [
            {"file": "pkg/models/moe.py", "distance": 1, "reason": "set at 3; applied at 6"},
        ]
        assert spots(reply) == [
            ("pkg/models/moe.py", 3, "attribute_assignment"),
            ("pkg/models/moe.py", 3, "read"),
            ("pkg/models/moe.py", 6, "multiply"),
        ]
        assert reply["unseen"] == []
        assert reply["reached"] == {
            "files_opened": 2,
            "files_entered": 2,
            "definitions": 2,
            "depth": 1,
            "other_owners": 0,
            "cut": "",
        }

    def test_reexports_relative_imports_and_renames(self, tmp_path: Path) -> None:
        grow(
            tmp_path,
            {
                "pkg/__init__.py": "",
                "pkg/layers/__init__.py": "from .moe import Router as Chosen\n",
                "pkg/layers/moe/__init__.py": "from .impl.moe import Moe as Router\n",
                "pkg/layers/moe/impl/moe.py": MOE,
                "pkg/models/v4.py": "from ..layers import Chosen\n\n\ndef build(config):\n    return Chosen(config)\n",
            },
        )
        reply = run(tmp_path, "factor", "pkg/models/v4.py")
        assert steps(reply) == [
            ("pkg/models/v4.py", 1, "imports", "Chosen"),
            ("pkg/models/v4.py", 5, "constructs", "Moe"),
            ("pkg/layers/__init__.py", 1, "imports", "Chosen"),
            ("pkg/layers/moe/__init__.py", 1, "imports", "Router"),
        ]
        assert reply["home"] == "pkg/layers/moe/impl/moe.py"

    def test_attribute_set_in_a_base_of_another_file(self, tmp_path: Path) -> None:
        grow(
            tmp_path,
            {
                "base.py": "class Base:\n    def __init__(self, s):\n        self.scale = s\n",
                "mid.py": "from base import Base\n\n\nclass Mid(Base):\n    pass\n",
                "leaf.py": """\
                    import mid


                    class Leaf(mid.Mid):
                        def forward(self, x):
                            return x * self.scale
                    """,
            },
        )
        reply = run(tmp_path, "scale", "leaf.py")
        assert spots(reply, "attribute_assignment", "multiply") == [
            ("leaf.py", 6, "multiply"),
            ("base.py", 3, "attribute_assignment"),
        ]
        assert (reply["home"], reply["chain"]) == ("leaf.py", [])
        narrow = run(tmp_path, "scale", "leaf.py:Leaf.forward")
        assert spots(narrow, "attribute_assignment") == [("base.py", 3, "attribute_assignment")]
        assert [h["distance"] for h in narrow["homes"]] == [0, 3]

    def test_a_class_is_entered_but_not_the_rest_of_its_file(self, tmp_path: Path) -> None:
        grow(
            tmp_path,
            {
                "lib.py": MOE + "\n\nclass Other:\n    factor = 2\n\n\ndef unused(factor):\n    return factor\n",
                "entry.py": "from lib import Moe\n\nmoe = Moe(None)\n",
            },
        )
        assert {line for _, line, _ in spots(run(tmp_path, "factor", "entry.py"))} == {3, 6}

    def test_only_the_method_called_on_a_class_is_entered(self, tmp_path: Path) -> None:
        lib = "class Tool:\n    def __init__(self):\n        self.knob = 1\n\n    @staticmethod\n    def make():\n"
        grow(
            tmp_path,
            {
                "lib.py": lib + "        return 2\n",
                "entry.py": "from lib import Tool\n\nmade = Tool.make()\n",
            },
        )
        reply = run(tmp_path, "knob", "entry.py")
        assert (reply["occurrences"], reply["home"]) == ([], None)
        assert reply["reached"]["definitions"] == 2
        assert reply["elsewhere"] == [{"file": "lib.py", "count": 1}]

    def test_the_nearest_setter_is_home_even_when_a_reader_is_nearer(self, tmp_path: Path) -> None:
        grow(
            tmp_path,
            {
                "entry.py": "from moe import Moe\n\nm = Moe()\n",
                "moe.py": """\
                    from factory import impl


                    class Moe:
                        def __init__(self):
                            self.experts = impl()()

                        def forward(self):
                            if self.experts.fuse:
                                return 1
                    """,
                "factory.py": "from experts import Experts\n\n\ndef impl():\n    return Experts\n",
                "experts.py": "class Experts:\n    def __init__(self):\n        self.fuse = True\n",
            },
        )
        reply = run(tmp_path, "fuse", "entry.py")
        assert reply["home"] == "experts.py"
        assert spots(reply) == [("moe.py", 9, "condition"), ("experts.py", 3, "attribute_assignment")]
        assert steps(reply) == [
            ("entry.py", 1, "imports", "Moe"),
            ("entry.py", 3, "constructs", "Moe"),
            ("moe.py", 1, "imports", "impl"),
            ("moe.py", 6, "calls", "impl"),
            ("factory.py", 1, "imports", "Experts"),
            ("factory.py", 5, "refers", "Experts"),
        ]

    def test_every_branch_of_a_conditional_definition(self, tmp_path: Path) -> None:
        grow(
            tmp_path,
            {
                "entry.py": """\
                    try:
                        from fast import kernel
                    except ImportError:
                        from slow import kernel

                    kernel(1)
                    """,
                "fast.py": "if a:\n    def kernel(scale):\n        pass\nelse:\n    def kernel(scale):\n        pass\n",
                "slow.py": "def kernel(scale):\n    return 2 * scale\n",
            },
        )
        assert spots(run(tmp_path, "scale", "entry.py"), "parameter") == [
            ("fast.py", 2, "parameter"),
            ("fast.py", 5, "parameter"),
            ("slow.py", 1, "parameter"),
        ]

    def test_in_function_and_type_checking_imports(self, tmp_path: Path) -> None:
        grow(
            tmp_path,
            {
                "entry.py": """\
                    from typing import TYPE_CHECKING

                    if TYPE_CHECKING:
                        from conf import Config


                    def go(config: "Config"):
                        from late import late

                        late()
                    """,
                "conf.py": "class Config:\n    knob: int = 3\n",
                "late.py": "def late():\n    knob = 1\n",
            },
        )
        assert spots(run(tmp_path, "knob", "entry.py")) == [("late.py", 2, "assignment"), ("conf.py", 2, "assignment")]

    def test_star_import_alias_partial_and_decorator(self, tmp_path: Path) -> None:
        grow(
            tmp_path,
            {
                "entry.py": """\
                    from functools import partial

                    from names import *

                    run = partial(apply, 1)


                    @wrap
                    def go():
                        return Alias()
                    """,
                "names.py": """\
                    from impl import Real, apply, wrap

                    Alias = Real
                    """,
                "impl.py": """\
                    class Real:
                        gain = 1


                    def apply(gain):
                        pass


                    def wrap(f):
                        return f.gain
                    """,
            },
        )
        reply = run(tmp_path, "gain", "entry.py")
        assert spots(reply) == [
            ("impl.py", 2, "assignment"),
            ("impl.py", 5, "parameter"),
            ("impl.py", 10, "read"),
        ]
        assert steps(reply) == [
            ("entry.py", 3, "imports", "Alias"),
            ("entry.py", 10, "constructs", "Real"),
            ("names.py", 3, "refers", "Real"),
            ("names.py", 1, "imports", "Real"),
        ]

    def test_diamond_and_import_cycle_end(self, tmp_path: Path) -> None:
        grow(
            tmp_path,
            {
                "a.py": "from b import B, C\n\n\nclass A(B, C):\n    pass\n",
                "b.py": "from top import Top\nimport a\n\n\nclass B(Top): ...\n\n\nclass C(Top, a.A): ...\n",
                "top.py": "from a import A\n\n\nclass Top(A):\n    size = 1\n",
            },
        )
        reply = run(tmp_path, "size", "a.py")
        assert spots(reply) == [("top.py", 5, "assignment")]
        assert reply["reached"]["definitions"] == 4
        assert run(tmp_path, "nowhere", "a.py:A")["occurrences"] == []

    @pytest.mark.parametrize("prefix", ["", "python/", "src/", "server/engine/"])
    def test_package_roots(self, tmp_path: Path, prefix: str) -> None:
        grow(
            tmp_path,
            {
                f"{prefix}vllm/__init__.py": "",
                f"{prefix}vllm/model_executor/layers/moe.py": MOE,
                f"{prefix}vllm/model_executor/models/mixtral.py": """\
                    from vllm.model_executor.layers.moe import Moe

                    m = Moe(None)
                    """,
                "tests/kernels/test_moe.py": "from vllm.model_executor.layers.moe import Moe\n\nMoe(None)\n",
            },
        )
        home = f"{prefix}vllm/model_executor/layers/moe.py"
        assert run(tmp_path, "factor", f"{prefix}vllm/model_executor/models/mixtral.py")["home"] == home
        assert run(tmp_path, "factor", "tests/kernels/test_moe.py")["home"] == home

    def test_an_external_package_is_not_mistaken_for_a_sibling(self, tmp_path: Path) -> None:
        grow(
            tmp_path,
            {
                "pkg/__init__.py": "",
                "pkg/models/transformers.py": "class Config:\n    knob = 1\n",
                "pkg/models/v4.py": "from transformers import Config\n\nc = Config()\n",
            },
        )
        assert run(tmp_path, "knob", "pkg/models/v4.py")["occurrences"] == []
