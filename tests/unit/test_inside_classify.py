"""What a class is said with: details, lines, scopes, guards; broken files; fragments of patches."""

from __future__ import annotations

import textwrap

import pytest

from sleuth.tools.inside.change_kinds import Change, settle
from sleuth.tools.inside.classify import Classes, classify, classify_fragment
from sleuth.tools.inside.hunks import blocks, diff_text, group

ROUTER = """\
class Router(Module):
    def __init__(self, factor, fold):
        super().__init__()
        self.factor = factor
        assert not fold, "not implemented"

    def unrelated(self):
        return 0

    def forward(self, weights):
        if is_hip():
            weights = weights.to(torch.float32)

        return weights
"""
FOLDED = ROUTER.replace('        assert not fold, "not implemented"\n', "        self.fold = fold\n")
GUARDED = FOLDED.replace(
    "\n        return weights",
    "\n        if self.fold:\n            weights = weights * self.factor\n        return weights",
)
UNCONDITIONAL = FOLDED.replace(
    "\n        return weights", "\n        weights = weights * self.factor\n        return weights"
)


def classes(old: str, new: str, path: str = "srt/router.py") -> Classes:
    a, b = (textwrap.dedent(text).split("\n") for text in (old, new))
    return classify(path, a, b, [hunk.blocks for hunk in group(blocks(a, b), len(a), len(b), 3)])


def changes(old: str, new: str, path: str = "srt/router.py") -> list[Change]:
    return [change for hunk in classes(old, new, path).hunks for change in hunk]


def brief(found: list[Change]) -> list[tuple[str, str]]:
    return [(change.kind, change.detail) for change in found]


def test_a_removed_assertion_carries_its_test_message_and_scope() -> None:
    removed, assigned, scaled = changes(ROUTER, GUARDED)
    assert (removed.kind, removed.detail) == ("assertion_removed", "not fold, 'not implemented'")
    assert (removed.scope, removed.stock_line, removed.clone_line) == ("Router.__init__", 5, None)
    assert (assigned.kind, assigned.after, assigned.clone_line) == ("assignment_added", "self.fold = fold", 5)
    assert (scaled.kind, scaled.detail, scaled.clone_line) == ("multiply_added", "weights * self.factor", 15)
    assert (scaled.scope, scaled.guards) == ("Router.forward", ("self.fold",))


def test_an_unconditional_factor_has_no_guards() -> None:
    scaled = changes(ROUTER, UNCONDITIONAL)[-1]
    assert (scaled.kind, scaled.detail, scaled.guards) == ("multiply_added", "weights * self.factor", ())


def test_a_deleted_assertion_alone_multiplies_nothing() -> None:
    assert [change.kind for change in changes(ROUTER, FOLDED)] == ["assertion_removed", "assignment_added"]


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (
            "y = x.to(torch.float32)",
            "y = x.to(torch.bfloat16)",
            [("dtype_changed", "float32 → bfloat16: downcast, 32 to 16 bits (24 to 8 of precision)")],
        ),
        (
            "y = tl.zeros(n, dtype=tl.float16)",
            "y = tl.zeros(n, dtype=tl.float32)",
            [("dtype_changed", "zeros dtype=: float16 → float32: upcast, 16 to 32 bits (11 to 24 of precision)")],
        ),
        ("y = x.float()", "y = x", [("dtype_changed", "upcast to float32 dropped: x.float()")]),
        ("y = f(x)", "y = f(x.to(y.dtype))", [("dtype_changed", "cast to y.dtype added: x.to(y.dtype)")]),
        ("y = x.add_(z)", "y = x.add_(z, alpha=s)", [("multiply_added", "add_: alpha=s")]),
        ("y = x * s", "y = x / s", [("multiply_removed", "x * s no longer has s"), ("divide_added", "x / s")]),
        ("y = f(x)", "y = f(x) if flag else f(x) * s", None),
        ("y = a and b", "y = a or b", [("condition_changed", "a and b → a or b")]),
        (
            "if n > 4:\n    y = 1",
            "if n > 8:\n    y = 1",
            [("condition_changed", "n > 4 → n > 8"), ("constant_changed", "4 → 8 in a condition")],
        ),
        ("x = EnvBool(True)", "x = EnvBool(False)", [("default_changed", "True → False")]),
        (
            "p.add_argument('--a', default=1)",
            "p.add_argument('--a', default=2)",
            [("default_changed", "--a: 1 → 2")],
        ),
        ("class A:\n    n: int = 1", "class A:\n    n: int = 2", [("default_changed", "n: 1 → 2")]),
        ("y = Req(a, extra_key=k)", "y = Req(a)", None),
        ("y = cache[n // 16]", "y = cache[n % 16]", [("index_changed", "cache[n // 16] → cache[n % 16]")]),
        ("y = max_len - 1", "y = max_len", [("index_changed", "max_len - 1 → max_len")]),
        ("offset = n * 2", "offset = n * 4", [("index_changed", "2 → 4")]),
        ("y = x.fill_(float('-inf'))", "y = x.fill_(0.0)", [("mask_changed", "float('-inf') → 0.0")]),
        ("assert isinstance(x, A)", "assert isinstance(x, (A, B))", None),
    ],
)
def test_details(old: str, new: str, expected: list[tuple[str, str]] | None) -> None:
    known = {
        "y = f(x)": [("guard_added", "f(x) if flag else f(x) * s"), ("multiply_added", "f(x) * s")],
        "y = Req(a, extra_key=k)": [
            ("argument_dropped", "Req: extra_key=k is gone"),
            ("cache_key_changed", "Req: extra_key=k is gone"),
        ],
        "assert isinstance(x, A)": [("assertion_weakened", "isinstance(x, A) → isinstance(x, (A, B))")],
    }
    assert brief(changes(old + "\n", new + "\n")) == (expected or known[old])


def test_a_factor_in_one_branch_of_a_conditional_is_guarded() -> None:
    scaled = changes("y = f(x)\n", "y = f(x) * s if flag else f(x)\n")[-1]
    assert (scaled.kind, scaled.guards) == ("multiply_added", ("flag",))


def test_an_assertion_that_only_runs_under_a_new_condition_is_weakened() -> None:
    (found,) = changes("assert x > 0\n", "if debug:\n    assert x > 0\n")
    assert (found.kind, found.detail) == ("assertion_weakened", "x > 0 is only checked if debug")


def test_an_assertion_that_became_a_warning_is_weakened() -> None:
    found = changes("assert x > 0, 'bad x'\n", "if not x > 0:\n    logger.warning('bad x')\n")
    assert [change.kind for change in found] == ["assertion_weakened"]


def test_a_wrapped_block_reports_the_guard_not_the_lines() -> None:
    found = changes("a = f(x)\nb = g(a)\n", "if flag:\n    a = f(x)\n    b = g(a)\n")
    assert brief(found) == [("guard_added", "flag now guards a = f(x)")]


def test_a_reformatted_file_is_whitespace_only() -> None:
    wide = "y = f(alpha, beta, gamma, delta)\nz = {'a': 1, 'b': 2}\n"
    tall = "y = f(\n    alpha,\n    beta,\n    gamma,\n    delta,\n)\nz = {\n    'a': 1,\n    'b': 2,\n}\n"
    assert [change.kind for change in changes(wide, tall)] == ["whitespace_only"]
    assert [change.kind for change in changes("a = 1\nb = 2\n", "a = 1\r\nb = 2\r\n")] == ["whitespace_only"]


def test_a_decorator_put_before_a_function_is_no_new_function() -> None:
    found = changes("def f(x):\n    return x\n", "@lru_cache\ndef f(x):\n    return x\n")
    assert [change.kind for change in found] == ["decorator_changed", "cache_key_changed"]
    assert found[0].scope == "f"


def test_broken_syntax_falls_back_to_the_hunk_alone() -> None:
    old = "def f(:\n" + "    pass\n" * 8 + "y = x\n"
    found = classes(old, old.replace("y = x\n", "y = x * scale\n"))
    assert found.method == "fragment"
    assert brief(found.hunks[0]) == [("multiply_added", "x * scale")]
    assert found.hunks[0][0].clone_line == 10


def test_unparsable_lines_fall_back_to_tokens() -> None:
    found = changes("y = ] x + 0.5 (\n", "y = ] x + 0.25 (\n")
    assert [change.kind for change in found] == ["constant_changed"]


@pytest.mark.parametrize(
    ("old", "new", "kinds"),
    [
        ("TORCH_CHECK(a > 0);\nf(a);", "f(a);", ["assertion_removed", "kernel_changed"]),
        ("float v = a;", "float v = a * s;", ["multiply_added", "kernel_changed"]),
        ("f(x);", "f(x); // * s", ["comment_only"]),
        ("const float* p = q;", "const float *p = q;", ["whitespace_only"]),
        ("void f(const T* a);", "void f(const T* a, const T* b);", ["parameter_added", "kernel_changed"]),
        ("float acc = 0;", "half acc = 0;", ["dtype_changed", "kernel_changed"]),
        ("a = b[i];", "a = b[i + 1];", ["index_changed", "kernel_changed"]),
        ("__syncthreads();\nf(x);", "f(x);", ["sync_removed", "kernel_changed"]),
        ("if (a < b) { f(x); }", "if (a <= b) { f(x); }", ["condition_changed", "kernel_changed"]),
        ('printf("a");', 'printf("b");', ["log_only"]),
        ("#include <a.h>", "#include <b.h>", ["import_changed"]),
    ],
)
def test_cuda_by_tokens(old: str, new: str, kinds: list[str]) -> None:
    found = [change.kind for change in changes(old + "\n", new + "\n", "csrc/k.cu")]
    assert [kind for kind in found if kind != "kernel_changed"] == [kind for kind in kinds if kind != "kernel_changed"]
    assert ("kernel_changed" in found) == ("kernel_changed" in kinds and not kinds[0].startswith("assertion"))


def test_configuration_keys_are_named() -> None:
    old = '{\n  "moe": {\n    "top_k": 8,\n    "scale": 2.5\n  }\n}\n'
    (found,) = changes(old, old.replace("2.5", "1.0"), "config.json")
    assert (found.kind, found.detail, found.clone_line) == ("config_changed", "moe.scale: 2.5 → 1.0", 4)


def test_a_fragment_from_inside_a_call_and_a_block_is_understood() -> None:
    old = ["            alpha,", "        )", "    out = out", "    return out"]
    new = ["            alpha,", "        )", "    out = out * factor", "    return out"]
    (found,) = classify_fragment("a/b.py", old, new)
    assert (found.kind, found.detail, found.clone_line, found.guards) == ("multiply_added", "out * factor", 3, ())


def test_a_fragment_from_inside_a_parameter_list_is_understood() -> None:
    old = ["        dtype: torch.dtype,", "    ):", "        self.dtype = dtype"]
    new = ["        dtype: torch.dtype,", "        scale: float = 1.0,", "    ):", "        self.dtype = dtype"]
    (found,) = classify_fragment("a/b.py", old, new)
    assert (found.kind, found.detail) == ("parameter_added", "scale = 1.0")


def test_a_fragment_that_ends_in_a_docstring_and_starts_in_an_else() -> None:
    old = ["    else:", "        y = x", "", "def g():", '    """Some']
    new = ["    else:", "        y = x / s", "", "def g():", '    """Some']
    (found,) = classify_fragment("a/b.py", old, new)
    assert (found.kind, found.detail) == ("divide_added", "x / s")


def test_a_fragment_from_inside_an_import_is_an_import() -> None:
    old = ["    alpha,", "    gamma,", ")", "from torch import nn"]
    new = ["    alpha,", "    beta,", "    gamma,", ")", "from torch import nn"]
    assert [change.kind for change in classify_fragment("a/b.py", old, new)] == ["import_changed"]


def test_code_beside_half_a_docstring_is_not_taken_for_text() -> None:
    old = ["    factor = f(x)", "    out = out", "    return out", "", "def g():", '    """Start of a text']
    new = ["    factor = f(x)", "    out = out * factor", *old[2:]]
    assert [change.kind for change in classify_fragment("a/b.py", old, new)] == ["multiply_added"]
    old = ["    self.a = 1", "    del self.a", '    """']
    new = ["    self.a = 1", '    """']
    assert [change.kind for change in classify_fragment("a/b.py", old, new)] != ["docstring_only"]


def test_a_fragment_of_nothing_but_docstring_text() -> None:
    old = ["    The factor is applied once, by the runner.", "    It is never applied by the router."]
    new = [old[0], "    It is always applied by the router."]
    assert [change.kind for change in classify_fragment("a/b.py", old, new)] == ["docstring_only"]


@pytest.mark.parametrize(
    "lines",
    [
        ["\0"],
        ["(" * 300],
        ["'''"],
        [""],
        ["\ufeffx"],
        ["\t  if"],
        ["x = 1"] * 3,
        ["def f(", "@"],
        ["\\"],
        ["1" * 5000 + "+"],
    ],
)
@pytest.mark.parametrize("path", ["a.py", "a.cu", "a.json", "a.md", "a", "Dockerfile", "a.yaml"])
def test_a_fragment_never_raises(lines: list[str], path: str) -> None:
    assert classify_fragment(path, lines, [*lines, "y = 2"])
    assert classify_fragment(path, [], lines) or not lines
    assert classify_fragment(path, lines, lines) == []


def test_cosmetic_classes_give_way_and_weak_ones_are_folded() -> None:
    assert [c.kind for c in settle([Change("rename_only", "a"), Change("raise_removed", "b")])] == ["raise_removed"]
    folded = settle([Change("call_added", f"f{n}()") for n in range(11)])
    assert len(folded) == 8
    assert folded[-1].detail == "f7() (and 3 more in this hunk)"


def test_hunks_are_those_of_diff_u() -> None:
    old, new = list("abcdefghijklmnop"), list("aBcdefghijklmnOp")
    hunks = group(blocks(old, new), len(old), len(new), 3)
    assert [hunk.header for hunk in hunks] == ["@@ -1,5 +1,5 @@", "@@ -12,5 +12,5 @@"]
    assert diff_text(hunks[0], old, new, 1000) == ("@@ -1,5 +1,5 @@\n a\n-b\n+B\n c\n d\n e", 0)
    assert diff_text(hunks[0], old, new, 20) == ("@@ -1,5 +1,5 @@\n a", 5)
    assert group(blocks([], ["x"]), 0, 1, 3)[0].header == "@@ -0,0 +1,1 @@"
