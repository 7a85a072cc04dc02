"""Power counting: what can't be known is asked, both ways; no answer is taken without a condition in the table."""

from __future__ import annotations

from pathlib import Path

import pytest

from ..support.powering import count, moe, outcomes, table

SET = "'FAST' in os.environ"
HELPER = (
    'import os\n\ndef flag(name, default="0"):\n    return os.environ.get(name, default).lower() in ("true", "1")\n\n'
)


class TestEnvironment:
    def test_a_variable_is_set_or_not(self, tmp_path: Path) -> None:
        body = "return x * self.factor if os.environ.get('FAST', '0') == '1' else x"
        assert table(count(tmp_path, moe(body, before="import os\n"))) == {
            f"{SET} is false": 0,
            f"{SET} is true and os.environ['FAST'] == '1' is false": 0,
            f"{SET} is true and os.environ['FAST'] == '1' is true": 1,
        }

    def test_a_default_is_a_text(self, tmp_path: Path) -> None:
        body = "return x * self.factor if flag('FAST', 'True') else x"
        found = table(count(tmp_path, moe(body, before=HELPER)))
        assert found.pop(f"{SET} is false") == 1
        assert sorted(found.values()) == [0, 1]

    def test_two_readings_agree(self, tmp_path: Path) -> None:
        body = """
            if os.getenv("FAST") == "1":
                x = x * self.factor
            if flag("FAST"):
                x = x * self.factor
            return x * self.factor if "FAST" not in os.environ else x
            """
        found = table(count(tmp_path, moe(body, before=HELPER)))
        assert found[f"{SET} is false"] == 1
        assert all(number == 2 for when, number in found.items() if "['FAST'] == '1' is true" in when)

    @pytest.mark.parametrize(
        ("facts", "expected"), [({"env.FAST": "0"}, 0), ({"env.FAST": 1}, 1), ({"env.*": None}, 0)]
    )
    def test_facts(self, tmp_path: Path, facts: dict[str, object], expected: int) -> None:
        body = "return x * self.factor if int(os.environ.get('FAST', 0)) else x"
        assert outcomes(count(tmp_path, moe(body, before="import os\n"), facts=facts)) == [expected]


class TestNone:
    @pytest.mark.parametrize("test", ["is not None", "!= None"])
    def test_both_answers(self, tmp_path: Path, test: str) -> None:
        body = f"return x * self.factor if self.config.shared {test} else x"
        assert table(count(tmp_path, moe(body))) == {
            "self.config.shared is None is false": 1,
            "self.config.shared is None is true": 0,
        } or table(count(tmp_path, moe(body))) == {
            "config.shared is None is false": 1,
            "config.shared is None is true": 0,
        }

    def test_it_agrees_with_what_else_is_known(self, tmp_path: Path) -> None:
        body = """
            shared = self.config.shared
            if shared is None and (shared or shared == 3 or isinstance(shared, int) or hasattr(shared, "a")):
                x = x * self.factor
            if shared and shared is None:
                x = x * self.factor
            return x
            """
        assert set(outcomes(count(tmp_path, moe(body)))) == {0}

    def test_what_was_used_is_not_none(self, tmp_path: Path) -> None:
        body = """
            flag = self.config.a.b
            return x * self.factor if self.config.a is not None else x
            """
        assert outcomes(count(tmp_path, moe(body))) == [1]

    def test_none_can_not_be_used(self, tmp_path: Path) -> None:
        body = "y = self.config.a\nif y is None:\n    x = x * y.b\nreturn x * self.factor"
        assert sorted(map(str, outcomes(count(tmp_path, moe(body))))) == ["1", "?"]


METHODS = """\
from abc import ABC, abstractmethod

class Method(ABC):
    @abstractmethod
    def apply(self, layer, x):
        raise NotImplementedError

class Plain(Method):
    def apply(self, layer, x):
        return x

class Fused(Method):
    def apply(self, layer, x):
        return x * layer.factor

class Unfinished(Method):
    def apply(self, layer, x):
        raise NotImplementedError("not yet")

class Config(ABC):
    @abstractmethod
    def get_method(self, layer) -> Method:
        raise NotImplementedError

"""
GIVEN = "self.experts = config.experts\n        self.method: Method = quant.get_method(self)"


def with_method(body: str, before: str = METHODS) -> str:
    """`moe`, whose object asks a configuration of unknown class for a method."""
    source = moe(body, before=before).replace("config, layer_id: int", "config, quant: Config")
    return source.replace("self.experts = config.experts", GIVEN)


class TestClasses:
    def test_every_class_runs(self, tmp_path: Path) -> None:
        source = with_method("return self.method.apply(self, x)")
        line = 1 + source.split("\n").index('        raise NotImplementedError("not yet")')
        found = table(count(tmp_path, source))
        assert {when.rpartition(" ")[2]: number for when, number in found.items()} == {
            "Plain": 0,
            "Fused": 1,
            "Unfinished": f"moe.py:{line}",
        }
        assert all(when.startswith("type(") for when in found)

    def test_type_and_isinstance_agree(self, tmp_path: Path) -> None:
        body = """
            x = self.method.apply(self, x)
            if type(self.method) is Fused and not isinstance(self.method, Fused):
                return x * self.factor * self.factor
            return x if type(self.method) in (Fused, Unfinished) else x * self.factor
            """
        assert {one for one in outcomes(count(tmp_path, with_method(body))) if isinstance(one, int)} == {1}

    def test_type_of_what_has_no_annotation(self, tmp_path: Path) -> None:
        body = """
            method = self.config.method
            if type(method) is Fused:
                x = x * self.factor
            if isinstance(method, Fused):
                x = x * self.factor
            if isinstance(method, Plain):
                x = x * self.factor if type(method) is Fused else x
            return x
            """
        assert set(outcomes(count(tmp_path, moe(body, before=METHODS)))) == {0, 2} or set(
            outcomes(count(tmp_path, moe(body, before=METHODS)))
        ) == {0, 1, 2}

    def test_too_many_classes_are_unknown(self, tmp_path: Path) -> None:
        more = "".join(
            f"class More{n}(Method):\n    def apply(self, layer, x):\n        return x\n\n" for n in range(13)
        )
        source = with_method("return self.method.apply(None, x) * self.factor", before=METHODS + more)
        assert outcomes(count(tmp_path, source)) == ["?"]
        source = with_method("return self.method.apply(self, x)", before=METHODS + more)
        assert outcomes(count(tmp_path, source, facts={"type(method)": "Fused"})) == [1]

    def test_classes_of_tests_are_left_out(self, tmp_path: Path) -> None:
        fake = "from moe import Method\n\nclass Fake(Method):\n    def apply(self, layer, x):\n        return x * x\n"
        files = {"moe.py": with_method("return self.method.apply(self, x)"), "tests/test_moe.py": fake}
        assert not any("Fake" in when for when in table(count(tmp_path, files)))


class TestTables:
    @pytest.mark.parametrize("kind", ["{'a', 'b'}", "frozenset(('a', 'b'))", "{'a': 1, 'b': 2}", "('a', 'b')"])
    def test_an_unknown_value_may_be_in_any(self, tmp_path: Path, kind: str) -> None:
        body = f"return x * self.factor if self.config.mode in {kind} else x"
        assert set(outcomes(count(tmp_path, moe(body)))) == {0, 1}

    def test_an_unknown_key(self, tmp_path: Path) -> None:
        body = "return x * {'a': self.factor, 'b': 1.0}.get(self.config.mode, self.factor * self.factor)"
        assert set(outcomes(count(tmp_path, moe(body)))) == {0, 1, 2}

    def test_an_enum_made_of_an_unknown_value(self, tmp_path: Path) -> None:
        before = "import enum\n\nclass Mode(enum.Enum):\n    A = 'a'\n    B = 'b'\n\n"
        body = "return x * self.factor if Mode(self.config.mode) is Mode.A else x"
        assert {0, 1} <= set(outcomes(count(tmp_path, moe(body, before=before)))) <= {0, 1, "?"}

    @pytest.mark.parametrize("pattern", ["None", "Fused()"])
    def test_match_on_a_class_is_unknown(self, tmp_path: Path, pattern: str) -> None:
        body = f"match self.config.mode:\n    case {pattern}:\n        x = x * self.factor\nreturn x"
        assert outcomes(count(tmp_path, moe(body, before=METHODS))) == ["?"]
