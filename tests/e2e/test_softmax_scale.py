"""What softmax-scale concludes about small patches of attention, its layers and its kernels' callers."""

from pathlib import Path
from textwrap import dedent

import pytest

from .test_twins_and_dead import CLEARED, OPEN, SUSPECTED, nth, verdict, work

MODEL, LAYER, BACKEND, ROPE = "pkg/model.py", "pkg/layer.py", "pkg/attn_backend.py", "pkg/rope.py"
STOCK = {
    MODEL: dedent(
        """\
        from .layer import AttentionLayer


        class Attention:
            def __init__(self, config, head_dim):
                self.scaling = head_dim**-0.5
                self.attn = AttentionLayer(config.heads, head_dim, self.scaling, logit_cap=config.cap)

            def forward(self, q, k, v, forward_batch):
                q, k = self.rope(q, k)
                return self.attn(q, k, v, forward_batch)
        """
    ),
    LAYER: dedent(
        """\
        class AttentionLayer:
            def __init__(self, heads, head_dim, scaling, logit_cap=0.0):
                self.heads = heads
                self.scaling = scaling
                self.logit_cap = logit_cap

            def forward(self, q, k, v, forward_batch):
                return forward_batch.attn_backend.forward(q, k, v, self, forward_batch)
        """
    ),
    BACKEND: dedent(
        """\
        import torch
        from kernels import decode_with_kv_cache, extend_attention


        class Backend:
            def __init__(self, model_runner):
                self.kv_cache_dtype = model_runner.kv_cache_dtype
                self.ragged = model_runner.ragged

            def forward_decode(self, q, cache, layer):
                k_scale = 1.0
                if self.kv_cache_dtype == torch.float8_e4m3fn:
                    k_scale = layer.k_scale
                return decode_with_kv_cache(
                    query=q, cache=cache, bmm1_scale=k_scale * layer.scaling, logit_cap=layer.logit_cap
                )

            def forward_extend(self, q, k, v, layer):
                o = torch.empty_like(q)
                if self.ragged:
                    q = q * layer.scaling
                    return extend_attention(q, k, v, cap=layer.logit_cap)
                extend_attention(q, k, v, o, layer.scaling, cap=layer.logit_cap)
                return o
        """
    ),
    ROPE: dedent(
        """\
        KEYS = ("attn_factor", "beta_fast", "beta_slow", "mscale", "mscale_all_dim")


        class Yarn:
            def __init__(self, factor, mscale=1.0, mscale_all_dim=0.0, attn_factor=1.0):
                self.mscale = magnitude(factor, mscale) / magnitude(factor, mscale_all_dim) * attn_factor

            def table(self, freqs):
                return freqs.cos() * self.mscale, freqs.sin() * self.mscale


        def magnitude(factor, mscale):
            return 0.1 * mscale * factor + 1.0


        def make(rope_scaling):
            kept = {k: v for k, v in rope_scaling.items() if k in KEYS}
            return Yarn(rope_scaling["factor"], **kept)
        """
    ),
}
GUARD = "        if self.kv_cache_dtype == torch.float8_e4m3fn:\n            k_scale = layer.k_scale\n"
UNGUARDED = "        k_scale = layer.k_scale if layer.k_scale is not None else 1.0\n"
CAPPED = ", logit_cap=layer.logit_cap"
RAGGED = "            q = q * layer.scaling\n"
COS = "freqs.cos() * self.mscale, freqs.sin() * self.mscale"
CASES = [
    pytest.param(MODEL, "        return self.attn(",
                 "        q = q * self.scaling\n        return self.attn(", SUSPECTED,
                 "scale_count", id="the model scales, too"),
    pytest.param(BACKEND, "k_scale * layer.scaling", "k_scale", SUSPECTED, "scale_count", id="the backend drops it"),
    pytest.param(BACKEND, "k_scale * layer.scaling", "k_scale * layer.scaling**2", OPEN, "", id="squared"),
    pytest.param(BACKEND, "k_scale * layer.scaling", "k_scale * layer.scaling * layer.scaling", SUSPECTED,
                 "scale_count",
                 id="the backend scales twice"),
    pytest.param(BACKEND, "cap=layer.logit_cap)\n        extend",
                 "scale=layer.scaling, cap=layer.logit_cap)\n        extend",
                 SUSPECTED, "scale_count", id="the kernel scales a scaled query"),
    pytest.param(BACKEND, RAGGED, "", SUSPECTED, "scale_count", id="one path no longer scales"),
    pytest.param(BACKEND, GUARD, UNGUARDED, SUSPECTED, "dequantised", id="the cache's type isn't asked"),
    pytest.param(BACKEND, GUARD, "        k_scale = layer.k_scale\n", SUSPECTED, "dequantised", id="never asked"),
    pytest.param(BACKEND, GUARD, "", SUSPECTED, "dequantised", id="a quantised cache is read as it is"),
    pytest.param(BACKEND, CAPPED, "", SUSPECTED, "uncapped", id="the cap isn't handed on"),
    pytest.param(BACKEND, "k, v, o, layer.scaling, cap=layer.logit_cap)", "k, v, o, layer.scaling)", SUSPECTED,
                 "uncapped",
                 id="nor on one of two paths"),
    pytest.param(ROPE, ', "mscale", "mscale_all_dim")', ")", SUSPECTED, "yarn", id="a list of keys drops two"),
    pytest.param(ROPE, COS, "freqs.cos(), freqs.sin()", SUSPECTED, "yarn", id="cos and sin aren't scaled"),
    pytest.param(MODEL, "head_dim**-0.5\n", "head_dim**-0.5\n        mscale = magnitude(config.factor, 1.0)\n"
                 "        self.scaling = self.scaling * mscale * mscale\n", SUSPECTED,
                 "yarn", id="whatever the config says"),
    pytest.param(BACKEND, "k_scale * layer.scaling", "layer.scaling * k_scale", CLEARED, "", id="the other way round"),
    pytest.param(BACKEND, GUARD, "        if self.kv_cache_dtype == torch.float8_e4m3fn:\n"
                 "            k_scale = 2.0 * layer.k_scale\n", OPEN, "", id="times two"),
    pytest.param(BACKEND, "decode_with_kv_cache(\n", "other_decode(\n", OPEN, "", id="another kernel"),
    pytest.param(BACKEND, "bmm1_scale=", "bmm2_scale=", OPEN, "", id="as another argument"),
    pytest.param(BACKEND,
                 RAGGED + "            return extend_attention(q, k, v, cap=layer.logit_cap)\n",
                 "            return extend_attention(q, k, v, cap=layer.logit_cap) * layer.scaling\n", OPEN, "",
                 id="after the softmax instead of before"),
    pytest.param(BACKEND, "            q = q * layer.scaling\n", "            v = v * layer.scaling\n", OPEN,
                 "", id="values"),
    pytest.param(BACKEND, "k, v, o, layer.scaling, cap=layer.logit_cap)",
                 "k, v, o, layer.scaling, **self.cap_of(layer))",
                 OPEN, "", id="keywords nobody knows"),
    pytest.param(BACKEND,
                 "decode_with_kv_cache(\n            query=q, cache=cache, bmm1_scale=k_scale * layer.scaling,",
                 "decode_whole(\n            query=q, cache=cache, layer=layer,", OPEN,
                 "", id="the layer handed over whole"),
    pytest.param(BACKEND, "class Backend", "# one of many\nclass Backend", CLEARED, "", id="a comment"),
    pytest.param(BACKEND, "cache=cache, bmm1_scale", "cache=cache.view(-1), bmm1_scale", CLEARED, "", id="a view"),
    pytest.param(MODEL, "self.rope(q, k)", "self.rope(q, k, self.offset)", OPEN, "", id="the embedding's arguments"),
]  # fmt: skip


@pytest.mark.parametrize(("file", "old", "new", "expected", "claim"), CASES)
def test_a_patch(tmp_path: Path, file: str, old: str, new: str, expected: str, claim: str) -> None:
    case = work(tmp_path, "softmax-scale", STOCK, {file: nth(STOCK[file], old, new, 1)})
    found = {e.hypothesis.partition("@")[0] for e in case.evidence if e.bearing == "supports"}
    assert verdict(case) == expected, [e.note for e in case.evidence]
    assert found == ({claim} if claim else set()), [e.note for e in case.evidence]


def test_a_repair_speaks_against_nobody(tmp_path: Path) -> None:
    stock = {**STOCK, BACKEND: STOCK[BACKEND].replace(GUARD, UNGUARDED)}
    case = work(tmp_path, "softmax-scale", stock, {BACKEND: STOCK[BACKEND]})
    assert not [e.note for e in case.evidence if e.bearing == "supports"]


def test_a_patch_of_something_else_is_not_examined(tmp_path: Path) -> None:
    stock = {"pkg/moe.py": "def moe(x, w):\n    return x * w\n"}
    case = work(tmp_path, "softmax-scale", stock, {"pkg/moe.py": "def moe(x, w):\n    return w * x\n"})
    assert verdict(case) == OPEN
    assert not case.evidence
