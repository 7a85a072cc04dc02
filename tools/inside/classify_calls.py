"""Calls compared: another callee, arguments that came, went, moved or changed, and what a call's name makes of them."""

from __future__ import annotations

import ast
import re
from difflib import SequenceMatcher

from .classify_sink import Place, Sink, arrow, same
from .classify_units import dump, show
from .classify_vocabulary import (
    CALLS,
    DEFAULT_WORDS,
    DIMENSION_WORDS,
    ENV_READERS,
    GETTERS,
    call_kind,
    callee,
    cast_target,
    describe_cast,
    is_cache_key,
    is_dtype,
    is_log,
    is_sync,
    topic,
)


def compare_calls(sink: Sink, a: ast.Call, b: ast.Call, at: Place) -> None:
    """Report how a call differs from the call in its place."""
    if is_log(a) and is_log(b):
        sink.say("log_only", arrow(a, b), a, b)
    elif cast_target(a) is not None and cast_target(b) is not None:
        _casts(sink, a, b, at)
    elif callee(a) != callee(b):
        _other_callee(sink, a, b, at)
    else:
        _receivers(sink, a, b, at)
        _arguments(sink, a, b, at)


def _casts(sink: Sink, a: ast.Call, b: ast.Call, at: Place) -> None:
    before, after = cast_target(a) or "", cast_target(b) or ""
    if before != after:
        sink.say("dtype_changed", describe_cast(before, after), a, b, at)
    _receivers(sink, a, b, at)
    others = [[arg for arg in call.args if not is_dtype(arg)] for call in (a, b)]
    if [dump(arg) for arg in others[0]] != [dump(arg) for arg in others[1]] and callee(a) == callee(b):
        _positional(sink, a, b, at)


def _receivers(sink: Sink, a: ast.Call, b: ast.Call, at: Place) -> None:
    """What the method is called on; a launch `kernel[grid](…)` has its grid there."""
    if isinstance(a.func, ast.Attribute) and isinstance(b.func, ast.Attribute):
        sink.compare(a.func.value, b.func.value, at)
    elif isinstance(a.func, ast.Subscript) and isinstance(b.func, ast.Subscript):
        sink.compare(a.func.value, b.func.value, at)
        if not same(a.func.slice, b.func.slice):
            sink.say("kernel_changed", f"launch grid {arrow(a.func.slice, b.func.slice)}", a.func, b.func, at)
    elif not same(a.func, b.func):
        sink.say("call_replaced", arrow(a.func, b.func), a.func, b.func, at)


def _other_callee(sink: Sink, a: ast.Call, b: ast.Call, at: Place) -> None:
    old, new = callee(a), callee(b)
    plain = isinstance(a.func, ast.Name)
    if old and new and sink.renamed(old, new, local=False) and plain == isinstance(b.func, ast.Name):
        sink.say("rename_only", arrow(a.func, b.func), a.func, b.func)
        _arguments(sink, a, b, at)
        return
    if old.rstrip("_") == new.rstrip("_") and new.endswith("_") and not old.endswith("_"):
        sink.say("inplace_introduced", arrow(a, b), a, b, at)
        _receivers(sink, a, b, at)
        _arguments(sink, a, b, at)
        return
    kinds = [call_kind(a), call_kind(b)]
    kind = kinds[0] if kinds[0] == kinds[1] and kinds[0] else "call_replaced"
    if is_sync(a) and not is_sync(b):
        kind = "sync_removed"
    sink.say(kind, arrow(a.func, b.func), a, b, at)
    _common_keywords(sink, a, b, at)


def _common_keywords(sink: Sink, a: ast.Call, b: ast.Call, at: Place) -> None:
    old = {word.arg: word.value for word in a.keywords if word.arg}
    for word in b.keywords:
        if word.arg in old:
            sink.compare(old[word.arg], word.value, _place(b, word.arg, at))


def _arguments(sink: Sink, a: ast.Call, b: ast.Call, at: Place) -> None:
    _positional(sink, a, b, at)
    old = {word.arg or f"**{show(word.value)}": word for word in a.keywords}
    new = {word.arg or f"**{show(word.value)}": word for word in b.keywords}
    for name in [name for name in old if name in new]:
        sink.compare(old[name].value, new[name].value, _place(b, name, at))
    gone = [old[name] for name in old if name not in new and not _now_positional(old[name], a, b)]
    came = [new[name] for name in new if name not in old and not _now_positional(new[name], b, a)]
    for word in list(gone):
        twin = next((other for other in came if same(other.value, word.value) and _telling(word.value)), None)
        if twin is not None:
            sink.say("argument_changed", f"{callee(b)}: {show(word)} is now {show(twin)}", word, twin, at)
            gone.remove(word)
            came.remove(twin)
    if len(gone) + len(came) < len(old.keys() ^ new.keys()) and len(a.args) != len(b.args):
        sink.say("argument_changed", f"{callee(b)}: an argument's place and keyword: {arrow(a, b)}", a, b, at)
    for word in gone:
        _keyword(sink, a, word, False, at)
    for word in came:
        _keyword(sink, b, word, True, at)


def _telling(value: ast.AST) -> bool:
    return not isinstance(value, ast.Constant) or not isinstance(value.value, bool | None)


def _now_positional(word: ast.keyword, mine: ast.Call, other: ast.Call) -> bool:
    """The same value is given by position on the other side, where it was not before."""
    wanted = dump(word.value)
    return wanted in map(dump, other.args) and wanted not in map(dump, mine.args)


def _keyword(sink: Sink, call: ast.Call, word: ast.keyword, added: bool, at: Place) -> None:
    name, text = word.arg or "**", f"{callee(call) or show(call.func)}: {show(word)}"
    sides = ("", word) if added else (word, "")
    if name == "alpha" and callee(call) in CALLS["plus"]:
        kind = "multiply_added" if added else "multiply_removed"
    elif name == "dtype" or name.endswith("_dtype"):
        kind = "dtype_changed"
    elif name in DIMENSION_WORDS and callee(call) in CALLS["reduction_changed"]:
        kind = "reduction_changed"
    elif name in DEFAULT_WORDS:
        kind = "default_changed"
    else:
        kind = "argument_added" if added else "argument_dropped"
    sink.say(kind, text if added else f"{text} is gone", sides[0], sides[1], at)
    if is_cache_key(name):
        sink.say("cache_key_changed", f"{text} {'added' if added else 'is gone'}", sides[0], sides[1], at)


def _positional(sink: Sink, a: ast.Call, b: ast.Call, at: Place) -> None:
    old, new = [dump(arg) for arg in a.args], [dump(arg) for arg in b.args]
    if old == new:
        return
    if sorted(old) == sorted(new):
        sink.say("argument_changed", f"{callee(b)}: another order: {arrow(a.args, b.args)}", a, b, at)
        return
    for tag, i, j, k, m in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag == "equal":
            continue
        both = min(j - i, m - k)
        for x, y, n in zip(a.args[i : i + both], b.args[k : k + both], range(k, k + both), strict=True):
            sink.compare(x, y, _place(b, n, at))
        for n in range(i + both, j):
            if not any(same(a.args[n], word.value) for word in b.keywords):
                _argument(sink, a, n, False, at)
        for n in range(k + both, m):
            if not any(same(b.args[n], word.value) for word in a.keywords):
                _argument(sink, b, n, True, at)


def _argument(sink: Sink, call: ast.Call, n: int, added: bool, at: Place) -> None:
    value = call.args[n]
    force = _place(call, n, at).force
    kind = force if force and force not in ("log_only",) else "argument_added" if added else "argument_dropped"
    text = f"{callee(call) or show(call.func)}: {show(value)}"
    sink.say(kind, f"{text} added" if added else f"{text} is gone", "" if added else value, value if added else "", at)


def _place(call: ast.Call, which: int | str | None, at: Place) -> Place:
    """What a difference in one argument (its position or keyword) is, given the function it goes to."""
    name, function = (which if isinstance(which, str) else ""), callee(call)
    label = f"{function} {name}=" if name else at.label
    force = at.force or _force(call, function, which)
    if force == "default_changed":
        label = _setting(call) or at.label or label
    place = at._replace(label=label, force=force)
    if name and is_cache_key(name):
        return place._replace(force="cache_key_changed")
    return place._replace(soft=topic(name) or at.soft) if name else place


def _setting(call: ast.Call) -> str:
    """The option, variable or key that a call gives a default for: its first long option, else its first text."""
    texts = [arg.value for arg in call.args if isinstance(arg, ast.Constant)]
    words = [text for text in texts if isinstance(text, str)]
    return next((word for word in words if word.startswith("--")), words[0] if words else "")


def _force(call: ast.Call, function: str, which: int | str | None) -> str:
    if which in DEFAULT_WORDS and (function in ("add_argument", "Field", "field", "option", "Option")):
        return "default_changed"
    if (ENV_READERS.search(show(call.func)) and which != 0) or (re.match(r"Env[A-Z]", function) and which == 0):
        return "default_changed"
    if function in GETTERS and which == (2 if function == "getattr" else 1):
        return "default_changed"
    if which in DIMENSION_WORDS and function in CALLS["reduction_changed"]:
        return "reduction_changed"
    if function in CALLS["layout_changed"]:
        return "layout_changed"
    if which == 0 and function in CALLS["reduction_changed"] and _is_dimension(call):
        return "reduction_changed"
    if function == "arange" and which != "dtype" and which != "device":
        return "index_changed"
    return "mask_changed" if which in ("mask", "attn_mask", "attention_mask", "other", "is_causal", "causal") else ""


def _is_dimension(call: ast.Call) -> bool:
    """`x.sum(-1)`: the first argument of a tensor's method is a dimension when it is a literal."""
    first = call.args[0] if call.args else None
    return isinstance(first, ast.Constant | ast.UnaryOp | ast.Tuple) and isinstance(call.func, ast.Attribute)


def wrapped(sink: Sink, call: ast.Call, inner: ast.AST, added: bool, at: Place) -> None:
    """Report that `call` now goes around the value `inner` (or no longer does)."""
    sides = ("", call) if added else (call, "")
    word = "added" if added else "dropped"
    target = cast_target(call)
    if is_log(call):
        sink.say("log_only", show(call), *sides)
    elif target is not None:
        sink.say("dtype_changed", f"{_way(target)}cast to {target} {word}: {show(call)}", sides[0], sides[1], at)
    elif is_sync(call) and not added:
        sink.say("sync_removed", f"{show(call)} dropped", sides[0], sides[1], at)
    else:
        kind = call_kind(call) or ("call_added" if added else "call_removed")
        around = f"{show(call.func)}(…)" if inner is not call.func else show(call)
        sink.say(kind, f"{around} {word} around {show(inner)}", sides[0], sides[1], at)


def _way(target: str) -> str:
    """Casts to 32 bits or more are called upcasts, to 16 or fewer downcasts; the source's type isn't known here."""
    from .classify_vocabulary import DTYPES

    known = DTYPES.get(target)
    if not known or known[2] != "float":
        return ""
    return "up" if known[0] >= 32 else "down"
