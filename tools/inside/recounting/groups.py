"""Reductions by their names: which calls sum over ranks, and over which group of them."""

from __future__ import annotations

import functools
import re

_REDUCES = re.compile(r"all_?reduce|reduce_?scatter", re.IGNORECASE)
_NO_REDUCTION = re.compile(
    r"(^|_)(can|should|is|has|need|needs|use|uses|enable|enabled|disable|support|supports|supported|set|get|init|"
    r"initialize|register|create|make|build|dispatch|unavailable|available|config|configs|kwargs|flags?|workspace|"
    r"poll|resolve|pre|sync|destroy|warmup|bench|test|skip)(_|$)",
    re.IGNORECASE,
)
_PERHAPS = re.compile(r"(^|_)(maybe|if|optional|optionally|forward|post|finalize|prepare|run)(_|$)", re.IGNORECASE)
_COMBINES = re.compile(r"(^|_)combine$|^(low_latency_)?combine(_|$)", re.IGNORECASE)
_GROUPS = (
    ("moe_ep", r"expert_?(model_)?parallel|(^|_)(moe_)?ep(_|$)"),
    ("moe_tp", r"moe_(tensor|tp)"),
    ("attn_tp", r"(attention|attn)_(tensor|tp)"),
    ("cp", r"context_parallel|sequence|(^|_)(attn_)?d?cp(_|$)"),
    ("dp", r"data_parallel|(^|_)dp(_|$)"),
    ("pp", r"pipeline|(^|_)pp(_|$)"),
    ("tp", r"tensor_model|model_parallel|(^|_)tp(_|$)"),
    ("world", r"(^|_)world(_|$)"),
)
TOUCHING = re.compile(
    r"reduc|scatter|gather|combine|all_?to_?all|collective|parallel|rank|group|fus|defer|skip|comm|world|dist|"
    r"(^|[^a-z])(tp|ep|dp|cp|moe_tp|attn_tp)_?(size|rank|$)|shard|partial",
    re.IGNORECASE,
)
"""Words that a statement about reductions may hold."""
_CALLED = re.compile(r"\b(\w+)[ \t]*\(")
MENTIONS = re.compile(r"(?i:all_?reduce|reduce_?scatter)\w*[ \t]*\(|\b(?:low_latency_)?combine[ \t]*\(")
"""A piece of source that may call a reduction."""


def reduces(name: str) -> bool:
    """Whether a callable of this name sums over ranks, rather than asks whether to, or sets something up."""
    return bool(_REDUCES.search(name)) and not _NO_REDUCTION.search(_REDUCES.sub("_", name))


@functools.lru_cache(maxsize=8192)
def called_in(text: str) -> bool:
    """Whether a piece of source calls a reduction."""
    return MENTIONS.search(text) is not None and any(reduces(n) or combines(n) for n in _CALLED.findall(text))


@functools.lru_cache(maxsize=8192)
def calls(text: str) -> frozenset[str]:
    """Names that a piece of source calls."""
    return frozenset(_CALLED.findall(text))


def asks_first(name: str) -> bool:
    """Whether a function of this name may decide by itself, so that its body says more than its name."""
    return bool(_PERHAPS.search(name))


def combines(name: str) -> bool:
    """Whether a callable outside the tree gathers expert outputs from other ranks and sums them."""
    return bool(_COMBINES.search(name))


def group_of(text: str) -> str:
    """The group of ranks that a call's text names, empty where it names none."""
    for word in re.findall(r"\w+", text):
        for group, pattern in _GROUPS:
            if re.search(pattern, word, re.IGNORECASE):
                return group
    return ""


_APART = ({"moe_ep", "moe_tp"}, {"attn_tp", "dp"}, {"attn_tp", "cp"}, {"tp", "dp"}, {"tp", "cp"}, {"moe_tp", "dp"})
"""Groups that divide the ranks in different directions: a sum over both is the sum over all, once."""
_WITHIN = ({"moe_ep", "tp"}, {"moe_tp", "tp"}, {"attn_tp", "tp"})
"""Groups of which one lies within the other: a sum over both counts some ranks twice."""


def times(groups: list[str]) -> tuple[int | None, str]:
    """How often a value that was reduced over these groups, in order, was summed; None with the reason if unclear."""
    most = max((groups.count(g) for g in groups), default=0)
    kinds = sorted(set(groups))
    for at, one in enumerate(kinds):
        for other in kinds[at + 1 :]:
            pair = {one, other}
            if pair in _APART:
                continue
            if pair in _WITHIN or "" in pair or "world" in pair:
                most = max(most, groups.count(one) + groups.count(other))
            else:
                return None, f"it is reduced over {one} and over {other}, and whether these share ranks isn't known"
    return most, ""
