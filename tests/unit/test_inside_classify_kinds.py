"""Every class of change: something that has it, and something close that has not."""

from __future__ import annotations

import textwrap

import pytest

from sleuth.tools.inside.change_kinds import COSMETIC, KINDS
from sleuth.tools.inside.classify import classify
from sleuth.tools.inside.hunks import blocks, group

Row = tuple[str, str, str, set[str]]


def kinds(old: str, new: str, path: str = "srt/layer.py") -> set[str]:
    """Classes of all hunks between two texts."""
    a, b = (textwrap.dedent(text).strip("\n").split("\n") for text in (old, new))
    hunks = [hunk.blocks for hunk in group(blocks(a, b), len(a), len(b), 3)]
    return {change.kind for changes in classify(path, a, b, hunks).hunks for change in changes}


def body(statement: str) -> str:
    """A function around some lines, so that names are local."""
    return "def forward(self, x, y, scale, mask, flag, n):\n" + textwrap.indent(statement, "    ") + "\n    return x\n"


# Each row: class, stock lines, clone lines, and exactly the classes expected; both are put into a function body.
POSITIVE: list[Row] = [
    ("assertion_removed", "assert n > 0, 'n'\ny = 1", "y = 1", {"assertion_removed"}),
    ("assertion_weakened", "assert n == 4", "assert n >= 4", {"assertion_weakened"}),
    ("assertion_added", "y = 1", "assert n > 0\ny = 1", {"assertion_added"}),
    ("raise_removed", "if n < 0:\n    raise ValueError(n)\ny = 1", "y = 1", {"raise_removed"}),
    ("guard_removed", "if flag:\n    y = x.cos()", "y = x.cos()", {"guard_removed"}),
    ("guard_added", "y = x.cos()", "if flag:\n    y = x.cos()", {"guard_added"}),
    (
        "exception_swallowed",
        "try:\n    y = x.cos()\nexcept KeyError:\n    pass",
        "try:\n    y = x.cos()\nexcept Exception:\n    pass",
        {"exception_swallowed"},
    ),
    ("condition_changed", "if n < y:\n    x = y", "if n <= y:\n    x = y", {"condition_changed"}),
    ("default_changed", "y = os.environ.get('A', '0')", "y = os.environ.get('A', '1')", {"default_changed"}),
    ("constant_changed", "y = f(0.5)", "y = f(0.25)", {"constant_changed"}),
    ("value_changed", "y = f(x)", "y = f(scale)", {"value_changed"}),
    ("assignment_added", "y = 1", "y = 1\nself.flag = flag", {"assignment_added"}),
    ("assignment_removed", "y = 1\nself.flag = flag", "y = 1", {"assignment_removed"}),
    ("multiply_added", "y = x", "y = x * scale", {"multiply_added"}),
    ("multiply_removed", "y = x * scale", "y = x", {"multiply_removed"}),
    ("divide_added", "y = x * scale", "y = x * scale / y.sqrt()", {"divide_added"}),
    ("divide_removed", "y = x / scale", "y = x", {"divide_removed"}),
    ("arithmetic_changed", "y = x + scale", "y = x - scale", {"arithmetic_changed"}),
    ("dtype_changed", "y = x.to(torch.float32)", "y = x.to(torch.bfloat16)", {"dtype_changed"}),
    ("index_changed", "y = x[n]", "y = x[n + 1]", {"index_changed"}),
    ("mask_changed", "y = x.masked_fill(mask, 0)", "y = x", {"mask_changed"}),
    ("reduction_changed", "y = x.sum(dim=-1)", "y = x.mean(dim=-1)", {"reduction_changed"}),
    ("layout_changed", "y = x.transpose(0, 1).contiguous()", "y = x.transpose(0, 1)", {"layout_changed"}),
    ("inplace_introduced", "x = x * scale", "x.mul_(scale)", {"inplace_introduced"}),
    ("cache_key_changed", "cache_key = (x, y)", "cache_key = (x,)", {"cache_key_changed"}),
    ("argument_added", "y = f(x)", "y = f(x, scale=scale)", {"argument_added"}),
    ("argument_dropped", "y = f(x, scale=scale)", "y = f(x)", {"argument_dropped"}),
    ("argument_changed", "y = f(x, scale)", "y = f(scale, x)", {"argument_changed"}),
    ("call_replaced", "y = fast(x)", "y = slow(x)", {"call_replaced"}),
    ("call_added", "y = x", "y = norm(x)", {"call_added"}),
    ("call_removed", "y = norm(x)", "y = x", {"call_removed"}),
    ("import_changed", "from a import b", "from a import b, c", {"import_changed"}),
    ("early_return_added", "y = 1", "if flag:\n    return y\ny = 1", {"early_return_added"}),
    ("sync_removed", "torch.cuda.synchronize()\ny = 1", "y = 1", {"sync_removed"}),
    ("code_added", "y = 1", "for i in mask:\n    pass\ny = 1", {"code_added"}),
    ("code_removed", "for i in mask:\n    pass\ny = 1", "y = 1", {"code_removed"}),
    ("whitespace_only", "y = f(x, n)", "y = f(\n    x,\n    n,\n)", {"whitespace_only"}),
    ("comment_only", "y = 1  # one", "y = 1  # two", {"comment_only"}),
    ("log_only", "logger.info('a %s', x)", "logger.warning('b %s', x)", {"log_only"}),
    ("type_annotation_only", "y: int = 1", "y: float = 1", {"type_annotation_only"}),
    ("rename_only", "tmp = f(x)\ny = tmp + tmp", "hidden = f(x)\ny = hidden + hidden", {"rename_only"}),
    ("moved_only", "a = f(x)\nb = g(y)\nc = h(n)", "b = g(y)\nc = h(n)\na = f(x)", {"moved_only"}),
]

# Whole files: what a function body can't show.
FILES: list[tuple[str, str, str, str, set[str]]] = [
    ("parameter_added", "a.py", "def f(x):\n    return x", "def f(x, n=1):\n    return x", {"parameter_added"}),
    ("parameter_removed", "a.py", "def f(x, n=1):\n    return x", "def f(x):\n    return x", {"parameter_removed"}),
    ("default_changed", "a.py", "def f(x, n=1):\n    return x", "def f(x, n=2):\n    return x", {"default_changed"}),
    ("decorator_changed", "a.py", "def f():\n    pass", "@torch.compile\ndef f():\n    pass", {"decorator_changed"}),
    ("docstring_only", "a.py", 'def f():\n    """A."""', 'def f():\n    """B."""', {"docstring_only"}),
    ("code_added", "a.py", "x = 1", "x = 1\n\n\nclass A:\n    y = 2", {"code_added"}),
    (
        "kernel_changed",
        "a.py",
        "@triton.jit\ndef k(p):\n    x = tl.load(p)",
        "@triton.jit\ndef k(p):\n    x = tl.load(p) * 2.0",
        {"kernel_changed", "multiply_added"},
    ),
    ("kernel_changed", "a.cu", "int a = f(b, 3);", "int a = f(b, 4);", {"kernel_changed", "constant_changed"}),
    ("config_changed", "a.yaml", "a:\n  b: 1", "a:\n  b: 2", {"config_changed"}),
    ("text_changed", "README.md", "one", "two", {"text_changed"}),
    ("test_only", "tests/test_a.py", "assert x", "pass", {"test_only"}),
]

# Each row: a class that must NOT be reported, stock and clone lines that come near it, and what they are.
NEGATIVE: list[Row] = [
    ("assertion_removed", "assert n > 0, 'old'", "assert n > 0, 'new'", {"log_only"}),
    ("assertion_removed", "assert n > 0", "if not n > 0:\n    raise ValueError(n)", {"guard_added"}),
    ("assertion_weakened", "assert n >= 4", "assert n == 4", {"assertion_added"}),
    ("assertion_added", "y = 1", "y = 1  # assert n > 0", {"comment_only"}),
    ("raise_removed", "raise ValueError('a')", "raise ValueError('b')", {"log_only"}),
    ("guard_removed", "if flag:\n    y = f(x)", "if n:\n    y = f(x)", {"condition_changed"}),
    ("guard_added", "y = 1", "y = 1\nif flag:\n    self.a = x", {"assignment_added"}),
    (
        "exception_swallowed",
        "try:\n    f(x)\nexcept KeyError:\n    y = 1",
        "try:\n    f(x)\nexcept KeyError:\n    y = 2",
        {"constant_changed"},
    ),
    ("condition_changed", "if n < y:\n    x = f(1)", "if n < y:\n    x = f(2)", {"constant_changed"}),
    ("default_changed", "y = os.environ.get('A', '0')", "y = os.environ.get('B', '0')", {"constant_changed"}),
    ("constant_changed", "y = x[0]", "y = x[1]", {"index_changed"}),
    ("value_changed", "tmp = f(x)\ny = tmp", "out = f(x)\ny = out", {"rename_only"}),
    ("assignment_added", "x = x", "x = x * scale", {"multiply_added"}),
    ("multiply_added", "y = '-' * 10", "y = '-' * 20", {"constant_changed"}),
    ("multiply_added", "y = f(x)", "y = f(*x)", {"value_changed"}),
    ("multiply_removed", "y = x * scale", "y = scale * x", {"arithmetic_changed"}),
    ("multiply_removed", "y = x * scale", "y = torch.mul(x, scale)", {"value_changed"}),
    ("divide_removed", "y = x / scale", "y = x * (1 / scale)", {"value_changed"}),
    ("divide_added", "num_blocks = n", "num_blocks = n // 2", {"index_changed"}),
    ("arithmetic_changed", "y = 'a' + x", "y = 'b' + x", {"constant_changed"}),
    ("dtype_changed", "y = x.to('cuda')", "y = x.to('cpu')", {"constant_changed"}),
    ("dtype_changed", "y = f('a float32 text')", "y = f('a bfloat16 text')", {"constant_changed"}),
    ("index_changed", "y = x + 2.0", "y = x + 3.0", {"constant_changed"}),
    ("mask_changed", "y = f(x)", "y = f(n)", {"value_changed"}),
    ("reduction_changed", "y = max(x, 1)", "y = min(x, 1)", {"call_replaced"}),
    ("layout_changed", "y = view(x)", "y = x", {"call_removed"}),
    ("inplace_introduced", "x.mul_(scale)", "x.mul_(y)", {"value_changed"}),
    ("cache_key_changed", "key_cache = f(x)", "key_cache = f(y)", {"value_changed"}),
    ("argument_dropped", "y = f(x, scale)", "y = f(x, scale=scale)", {"argument_changed"}),
    ("argument_changed", "y = f(x, 1)", "y = f(x, 2)", {"constant_changed"}),
    ("call_replaced", "y = x.add(n)", "y = x.add_(n)", {"inplace_introduced"}),
    ("call_added", "y = 1", "y = 1\nlogger.info('x')", {"log_only"}),
    ("import_changed", "from a import b, c", "from a import c, b", {"moved_only"}),
    ("early_return_added", "return x", "return y", {"value_changed"}),
    ("sync_removed", "y = 1", "torch.cuda.synchronize()\ny = 1", {"call_added"}),
    ("whitespace_only", "y = 'a b'", "y = 'a  b'", {"constant_changed"}),
    ("comment_only", "y = '# a'", "y = '# b'", {"constant_changed"}),
    ("log_only", "logger.info('a')\ny = 1", "logger.info('b')\ny = 2", {"constant_changed"}),
    ("type_annotation_only", "y: int = 1", "y: float = 2", {"constant_changed"}),
    ("rename_only", "a = f(x)\nb = g(a, n)", "a = f(x)\nb = g(x, n)", {"value_changed"}),
    ("moved_only", "a = f(x)\nb = g(y)", "b = g(y)\na = f(n)", {"value_changed"}),
]


def test_the_list_of_classes_is_complete() -> None:
    shown = {row[0] for row in POSITIVE} | {row[0] for row in FILES}
    assert shown == set(KINDS)
    assert all(kind.meaning and "\n" not in kind.meaning for kind in KINDS.values())
    assert {name for name in KINDS if name.endswith("_only")} == COSMETIC


@pytest.mark.parametrize(("kind", "old", "new", "expected"), POSITIVE, ids=[row[0] for row in POSITIVE])
def test_a_change_has_its_class(kind: str, old: str, new: str, expected: set[str]) -> None:
    assert kind in expected
    assert kinds(body(old), body(new)) == expected


@pytest.mark.parametrize(("kind", "path", "old", "new", "expected"), FILES, ids=[f"{r[0]}-{r[1]}" for r in FILES])
def test_a_file_has_its_class(kind: str, path: str, old: str, new: str, expected: set[str]) -> None:
    assert kind in expected
    assert kinds(old, new, path) == expected


@pytest.mark.parametrize(
    ("kind", "old", "new", "expected"), NEGATIVE, ids=[f"{r[0]}-{n}" for n, r in enumerate(NEGATIVE)]
)
def test_a_near_miss_has_not(kind: str, old: str, new: str, expected: set[str]) -> None:
    found = kinds(body(old), body(new))
    assert kind not in found
    assert found == expected
