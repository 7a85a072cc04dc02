"""Classes of the changes in source that has no syntax tree here: C++, CUDA, shell, broken Python; by token rules."""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import SequenceMatcher

from .change_kinds import COSMETIC, Change
from .classify_tokens import Statement, in_lines, statements
from .classify_vocabulary import CALLS, DTYPES, INDEX_NAMES, SIZE_NAMES, describe_cast, parts
from .hunks import Block, equal_runs, likeness

CHECKS = re.compile(
    r"^(assert|static_assert|TORCH_(INTERNAL_)?(CHECK|ASSERT)\w*|AT_(CHECK|ASSERT)\w*|DCHECK\w*|CHECK(_\w+)?|ICHECK\w*"
    r"|TVM_FFI_ICHECK\w*|RuntimeCheck|STD_TORCH_CHECK\w*|FLASHINFER_CHECK|GGML_ASSERT|\w+_CHECK|\w+_ASSERT)$"
)
LOGS = re.compile(
    r"^(printf|fprintf|LOG|DLOG|VLOG|log_\w+|logger|std::cerr|std::cout|cerr|cout|TM_LOG_\w+|echo|println)$"
)
COMPARISONS = frozenset("< > <= >= == != && || ! and or not in is".split())
TESTS = frozenset("if while elif else when unless".split())
NUMBER = re.compile(r"^(0[xX])?\d")
WORD = re.compile(r"^[A-Za-z_]")
PARAMETER = re.compile(
    r"\b(int|float|double|bool|char|void|half|auto|T|Tkv|size_t|\w+_t|\w+ :: \w+|[A-Z]\w+)"
    r"( const)?( \*| &|__restrict__)* [a-z_]\w*( ,| \)| =|$)"
)
DECLARES = re.compile(
    r"^(template .*> |extern |static |inline |constexpr |const |__\w+__ )*"
    r"(\w+ :: )*\w+( < .* >)?( const)?( \*| &)* \w+( :: \w+)* \("
)
STATEMENTS = frozenset("return throw else new delete case goto".split())
TYPES = frozenset(DTYPES) | frozenset("const auto void char unsigned signed T scalar_t typename struct class".split())
CASTS = frozenset("static_cast reinterpret_cast __half2float __float2half __bfloat162float __float2bfloat16".split())


def classify_text(
    old: Sequence[str], new: Sequence[str], hunks: list[list[Block]], language: str
) -> list[list[Change]]:
    """Changes of each hunk between two texts, unsettled; an empty list where only layout or comments differ."""
    sides = statements("\n".join(old), language), statements("\n".join(new), language)
    return [_hunk(sides[0], sides[1], blocks, language) for blocks in hunks]


def _hunk(old: list[Statement], new: list[Statement], blocks: list[Block], language: str) -> list[Change]:
    gone = in_lines(old, [(b.old_start, b.old_end) for b in blocks])
    came = in_lines(new, [(b.new_start, b.new_end) for b in blocks])
    pairs, gone, came, moved = _pairs(gone, came)
    found: list[Change] = [Change("moved_only", b.text, "", "", a.start + 1, b.start + 1) for a, b in moved]
    for a, b in pairs:
        found += _compare(a, b)
    for statement in gone:
        found += _lone(statement, False)
    for statement in came:
        found += _lone(statement, True)
    real = [c for c in found if c.kind not in COSMETIC | {"import_changed"} and not c.kind.startswith("assertion")]
    if language == "cuda" and real:
        first = real[0]
        found.append(Change("kernel_changed", "CUDA source differs", "", "", first.stock_line, first.clone_line))
    return found


Pairs = list[tuple[Statement, Statement]]


def _pairs(old: list[Statement], new: list[Statement]) -> tuple[Pairs, list[Statement], list[Statement], Pairs]:
    """(changed pairs, gone, came, moved pairs)."""
    keys = [" ".join(s.tokens) for s in old], [" ".join(s.tokens) for s in new]
    same = equal_runs(*keys)
    left = {i + n for i, _, size in same for n in range(size)}
    right = {k + n for _, k, size in same for n in range(size)}
    gone = [s for i, s in enumerate(old) if i not in left]
    came = [s for k, s in enumerate(new) if k not in right]
    moved, gone, came = _matched(gone, came, lambda a, b: 1.0 if a.tokens == b.tokens and len(a.tokens) > 3 else 0.0)
    changed, gone, came = _matched(gone, came, lambda a, b: _alike(a, b))
    return changed, gone, came, moved


def _alike(a: Statement, b: Statement) -> float:
    return likeness(a.tokens, b.tokens) + (0.1 if a.tokens[0] == b.tokens[0] else -0.1)


def _matched(
    old: list[Statement], new: list[Statement], score: object
) -> tuple[Pairs, list[Statement], list[Statement]]:
    """Greedy pairs with a score of at least 0.6, and what is left on each side."""
    assert callable(score)
    if len(old) * len(new) > 40_000:
        return [], old, new
    ranked = sorted((-float(score(a, b)), abs(i - k), i, k) for i, a in enumerate(old) for k, b in enumerate(new))
    left: set[int] = set()
    right: set[int] = set()
    pairs = []
    for negative, _, i, k in ranked:
        if negative <= -0.6 and i not in left and k not in right:
            left.add(i)
            right.add(k)
            pairs.append((old[i], new[k]))
    rest = [s for i, s in enumerate(old) if i not in left], [s for k, s in enumerate(new) if k not in right]
    return sorted(pairs, key=lambda both: both[1].start), *rest


def _change(
    kind: str, detail: str, a: Statement | None, b: Statement | None, before: str = "", after: str = ""
) -> Change:
    lines = a.start + 1 if a else None, b.start + 1 if b else None
    return Change(kind, detail, before or (a.text if a else ""), after or (b.text if b else ""), *lines)


def _compare(a: Statement, b: Statement) -> list[Change]:
    """What differs between two statements taken for one."""
    detail = f"{a.text} → {b.text}"
    first = b.tokens[0]
    if first in ("import", "from", "using", "use") or b.tokens[:2] == ["#", "include"]:
        return [_change("import_changed", detail, a, b)]
    if any(map(LOGS.match, (a.tokens[0], first))):
        return [_change("log_only", detail, a, b)]
    if CHECKS.match(first) and CHECKS.match(a.tokens[0]):
        return [_change(_check_change(a, b), detail, a, b)]
    found: dict[str, Change] = {}
    for tag, i, j, k, m in SequenceMatcher(None, a.tokens, b.tokens, autojunk=False).get_opcodes():
        if tag == "equal":
            continue
        kind, said = _piece(a, b, (i, j), (k, m))
        before, after = " ".join(a.tokens[i:j]), " ".join(b.tokens[k:m])
        here = f"{_near(a, i, j)} → {_near(b, k, m)}"
        found.setdefault(kind, _change(kind, said or here, a, b, before, after))
    return list(found.values()) or [_change("value_changed", detail, a, b)]


def _near(s: Statement, start: int, end: int, around: int = 5) -> str:
    """The tokens with a few neighbours, as text."""
    a, b = max(0, start - around), min(len(s.tokens), end + around)
    return ("… " if a else "") + Statement(s.tokens[a:b]).text + (" …" if b < len(s.tokens) else "")


def _check_change(a: Statement, b: Statement) -> str:
    """A check whose texts alone differ is reworded; any other change of it may loosen it."""
    texts = [[t for t in s.tokens if t.lstrip("LRu8f")[:1] not in ('"', "'")] for s in (a, b)]
    return "log_only" if texts[0] == texts[1] else "assertion_weakened"


def _piece(a: Statement, b: Statement, old: tuple[int, int], new: tuple[int, int]) -> tuple[str, str]:
    """(class, detail) of one run of differing tokens."""
    gone, came = a.tokens[slice(*old)], b.tokens[slice(*new)]
    both = gone + came
    if any(t in DTYPES for t in gone) and any(t in DTYPES for t in came):
        names = [next(t for t in side if t in DTYPES) for side in (gone, came)]
        if names[0] != names[1]:
            return "dtype_changed", describe_cast(*names)
    if any(t in CASTS for t in both):
        return "dtype_changed", ""
    if _within(b if came else a, new[0] if came else old[0], "[", "]") and not any(t in "=" for t in both):
        return "index_changed", ""
    listed = _listed(a, b, old, new)
    if listed:
        return listed, ""
    scale = _scale(a, b, old, new)
    if scale:
        return scale
    if _compares(b, both) or (b.tokens[0] in TESTS and b.tokens[0] == a.tokens[0]):
        return "condition_changed", ""
    return _piece_value(a, b, gone, came)


def _listed(a: Statement, b: Statement, old: tuple[int, int], new: tuple[int, int]) -> str:
    """Members that came to or left a list in parentheses: parameters when they have types, else arguments."""
    gone, came = a.tokens[slice(*old)], b.tokens[slice(*new)]
    piece = came or gone
    if (gone and came) or "," not in piece or "{" in piece[:-1] or {"=", "+", "/"} & set(piece):
        return ""
    side, at = (b, new) if came else (a, old)
    around = " ".join(side.tokens[max(0, at[0] - 2) : at[1] + 2])
    word = "parameter" if PARAMETER.search(around) else "argument"
    return f"{word}_{'added' if came else 'removed' if word == 'parameter' else 'dropped'}"


def _compares(s: Statement, piece: list[str]) -> bool:
    """Whether a comparison or boolean operator is in a piece; `<` and `>` mostly hold template arguments."""
    plain = [t for t in piece if t in COMPARISONS and t not in "<>"]
    tested = any(t in TESTS or t in ("for", "?", "&&", "||") for t in s.tokens)
    return bool(plain) or (tested and piece.count("<") + piece.count(">") == 1)


def _piece_value(a: Statement, b: Statement, gone: list[str], came: list[str]) -> tuple[str, str]:
    """Literals, signs, names and calls, once types, subscripts, factors and tests are ruled out."""
    both = gone + came
    if both and all(NUMBER.match(t) or t[0] in "\"'" or t in ("true", "false", "True", "False", "-") for t in both):
        return ("index_changed" if _is_offset(b) else "constant_changed"), ""
    if any(t in "%" or t == "//" for t in both):
        return "index_changed", ""
    signs = [
        t
        for t in both
        if t in ("+", "-", "+=", "-=", "/", "/=", "*=") or (t == "*" and not PARAMETER.search(" ".join(both)))
    ]
    if signs and not any(t == ")" or t == "void" for t in both[:4]):
        return ("index_changed" if _is_offset(b) else "arithmetic_changed"), ""
    for kind in ("layout_changed", "reduction_changed", "mask_changed"):
        if any(t in CALLS[kind] and t not in ("t", "view", "where", "min", "max", "any", "all") for t in both):
            return kind, ""
    if gone and came and len(gone) == len(came) == 1 and WORD.match(gone[0]) and WORD.match(came[0]):
        follows = b.tokens.index(came[0]) + 1
        return ("call_replaced" if b.tokens[follows : follows + 1] == ["("] else "value_changed"), ""
    return "value_changed", ""


def _within(statement: Statement, at: int, opening: str, closing: str) -> bool:
    before = statement.tokens[:at]
    return before.count(opening) > before.count(closing)


def _is_offset(statement: Statement) -> bool:
    """The assigned name is an index or offset."""
    if "=" not in statement.tokens:
        return False
    at = statement.tokens.index("=")
    words = parts(statement.tokens[at - 1]) if at else []
    return bool(words) and words[-1] in INDEX_NAMES


def _scale(a: Statement, b: Statement, old: tuple[int, int], new: tuple[int, int]) -> tuple[str, str] | None:
    """A factor or divisor that came or went: one operator and its operand, or `*=`; never a pointer's star."""
    gone, came = a.tokens[slice(*old)], b.tokens[slice(*new)]
    for side, at, statement, other, verb in ((came, new[0], b, gone, "added"), (gone, old[0], a, came, "removed")):
        for sign, name in (("*", "multiply"), ("/", "divide")):
            if sign in other or sign + "=" in other or _is_offset(statement):
                continue
            if (sign + "=" in side and other == ["="]) or (
                sign in (*side[:1], *side[-1:]) and not other and _binary(statement, at, side, sign)
            ):
                return f"{name}_{verb}", statement.text
    return None


def _binary(statement: Statement, at: int, side: list[str], sign: str) -> bool:
    """Whether the operator stands between two operands, neither of them a type."""
    n = at + side.index(sign)
    left = statement.tokens[n - 1] if n else ""
    right = statement.tokens[n + 1] if n + 1 < len(statement.tokens) else ""
    operand = bool(left) and (left in ")]" or bool(WORD.match(left) or NUMBER.match(left)))
    follows = bool(right) and (right == "(" or bool(WORD.match(right) or NUMBER.match(right)))
    return operand and follows and left not in TYPES and not left.endswith("_t") and len(side) <= 8


def _lone(s: Statement, added: bool) -> list[Change]:
    """What a statement that came or went without a counterpart is."""
    kind = _lone_kind(s, added)
    if kind is None:
        return []
    return [_change(kind, s.text, None if added else s, s if added else None)]


def _lone_kind(s: Statement, added: bool) -> str | None:
    first, joined = s.tokens[0], " ".join(s.tokens)
    word = "added" if added else "removed"
    if not any(WORD.match(t) or NUMBER.match(t) for t in s.tokens):
        return None
    if any(CHECKS.match(t) for t in s.tokens[:3]):
        return f"assertion_{word}"
    if first in ("throw", "raise", "panic"):
        return "guard_added" if added else "raise_removed"
    if first in ("import", "from", "using", "use") or s.tokens[:2] == ["#", "include"]:
        return "import_changed"
    if any(LOGS.match(t) for t in s.tokens[:3]):
        return "log_only"
    if any(t in CALLS["sync"] and t != "wait" for t in s.tokens) and not added:
        return "sync_removed"
    if added and (first == "return" or (first == "if" and "return" in s.tokens)):
        return "early_return_added"
    scaled = next((n for n, t in enumerate(s.tokens) if t in ("*=", "/=")), 0)
    if scaled and set(parts(s.tokens[scaled - 1])) & SIZE_NAMES:
        return "arithmetic_changed"
    if scaled:
        return f"{'multiply' if '*=' in s.tokens else 'divide'}_{word}"
    return _lone_plain(s, joined, word)


def _lone_plain(s: Statement, joined: str, word: str) -> str:
    assigned = "=" in s.tokens[1:]
    if assigned and re.search(r"^(\w+) = \1 [*/] ", joined):
        return f"{'multiply' if '*' in s.tokens else 'divide'}_{word}"
    if assigned and s.tokens[0] not in TESTS | {"for"}:
        return f"assignment_{word}"
    if s.tokens[-1] == ";" and "(" in s.tokens and not (DECLARES.match(joined) and s.tokens[0] not in STATEMENTS):
        return f"call_{word}"
    return "code_added" if word == "added" else "code_removed"
