"""What `sleuth tool NAME --describe` says."""

import pytest

from sleuth.tools.describe import describe
from sleuth.tools.registry import TOOLS, get_tool


@pytest.mark.parametrize("name", sorted(TOOLS))
def test_every_argument_and_finding_is_named(name: str) -> None:
    tool = get_tool(name)
    lines = [line.strip() for line in describe(tool).splitlines()]
    for field in [*tool.Args.model_fields, *tool.Data.model_fields]:
        assert any(line.startswith(f"{field}: ") for line in lines), field


@pytest.mark.parametrize("name", sorted(TOOLS))
def test_every_argument_has_a_description(name: str) -> None:
    assert [n for n, field in get_tool(name).Args.model_fields.items() if not field.description] == []


def test_findings_carry_their_docstrings_and_inner_fields() -> None:
    text = describe(get_tool("grep"))
    assert "  total: int\n      Matching lines, all of them.\n" in text
    assert "      lines_read: int\n          Lines that the search did read where it found nothing.\n" in text


def test_an_attributes_list_serves_too() -> None:
    assert "  unset: list[str]\n      names asked for that nobody set" in describe(get_tool("env_probe"))
