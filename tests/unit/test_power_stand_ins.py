"""Power counting: what each family of operations does to the power, on small trees whose count is known."""

from pathlib import Path

import pytest

from ..support.powering import count, kinds, moe, outcomes, table

ROUTE = """\
w, ids = torch.topk(logits.softmax(-1), 8)
w = w / w.sum(-1, keepdim=True)
"""

BODIES = {
    "multiply": ("y = self.experts(x, w)\nreturn y * self.factor", 1),
    "from the left": ("y = self.experts(x, w)\nreturn self.factor * y", 1),
    "never": ("return self.experts(x, w)", 0),
    "twice": ("y = self.experts(x, w)\ny = y * self.factor\nreturn y.mul(self.factor)", 2),
    "in place": ("y = x.clone()\ny *= self.factor\nreturn y", 1),
    "mul_": ("y = x.clone()\ny.mul_(self.factor)\nreturn y", 1),
    "torch.mul": ("return torch.mul(x, self.factor)", 1),
    "torch.mul with out": ("y = torch.empty_like(x)\ntorch.mul(x, self.factor, out=y)\nreturn y", 1),
    "division by the reciprocal": ("return x / (1.0 / self.factor)", 1),
    "alpha in place": ("s = self.shared(x)\ny = self.experts(x, w)\ns.add_(y, alpha=self.factor)\nreturn s", 1),
    "alpha of torch.add": ("y = self.experts(x, w)\nreturn torch.add(self.shared(x), y, alpha=self.factor)", 1),
    "addcmul": ("return torch.addcmul(self.shared(x), self.experts(x, w), w, value=self.factor)", 1),
    "float of it": ("return self.experts(x, w) * float(self.factor)", 1),
    "folded into the weights": ("w = w * self.factor\nreturn self.experts(x, w)", 1),
    "folded, then multiplied": ("w *= self.factor\nreturn self.experts(x, w) * self.factor", 2),
    "multiplied before a renormalisation": (
        "w = w * self.factor\nw = w / w.sum(-1, keepdim=True)\nreturn self.experts(x, w)",
        0,
    ),
    "renormalised in place": ("w *= self.factor\nw /= w.sum(-1, keepdim=True)\nreturn self.experts(x, w)", 0),
    "normalize": ("w = F.normalize(w * self.factor, p=1, dim=-1)\nreturn self.experts(x, w)", 0),
    "reciprocal that cancels": ("w = w / self.factor\nreturn self.experts(x, w) * self.factor", 0),
    "reciprocal for a fused shared slot": (
        "w[:, -1] = w[:, :-1].sum(-1) / self.factor\nreturn self.experts(x, w) * self.factor",
        1,
    ),
    "cat with a shared slot": (
        "s = torch.ones(1) / self.factor\nw = torch.cat([w, s], -1)\nreturn self.experts(x, w) * self.factor",
        1,
    ),
    "copy_": ("y = torch.empty_like(x)\ny.copy_(x * self.factor)\nreturn y", 1),
    "assignment to all of it": ("y = torch.empty_like(x)\ny[...] = x * self.factor\nreturn y", 1),
    "a view written in place": (
        "y = torch.zeros_like(x)\ny += self.experts(x, w)\nz = y.view(-1)\nz *= self.factor\nreturn y",
        1,
    ),
    "a slice that covers all": ("y = x.clone()\ny[:] *= self.factor\nreturn y", 1),
    "both halves": ("y = self.experts(x, w)\ny[:, :-1] *= self.factor\ny[:, -1:] *= self.factor\nreturn y", 1),
    "a cut off end": ("y = self.experts(x, w)\ny = y[: x.shape[0]]\ny *= self.factor\nreturn y", 1),
    "where": ("y = x * self.factor\nreturn torch.where(x > 0, y, 0)", 1),
    "stack and sum": ("return torch.stack([x * self.factor, x * self.factor]).sum(0)", 1),
    "chunks": ("a, b = x.chunk(2)\na *= self.factor\nb *= self.factor\nreturn x", 1),
    "shared part apart": ("y = self.experts(x, w) * self.factor\ny += self.shared(x)\nreturn y", 1),
    "shared part scaled too": ("y = self.experts(x, w) + self.shared(x)\nreturn y * self.factor", 1),
    "is not None": ("if self.factor is not None:\n    x = x * self.factor\nreturn x", 1),
    "differs from one": ("if self.factor != 1.0:\n    x = x * self.factor\nreturn x", 1),
    "or one": ("f = self.factor or 1.0\nreturn x * f", 1),
    "power": ("return x * self.factor ** 2", 2),
    "a list of outputs": ("outs = [x * self.factor for _ in range(3)]\nreturn sum(outs)", 1),
    "a stream": (
        (
            "stream = torch.cuda.Stream()\nwith torch.cuda.stream(stream):\n    x = x * self.factor\n"
            "stream.synchronize()\nreturn x"
        ),
        1,
    ),
    "unknown attributes and calls": (
        "self.config.tracer.start('x', x=1)\ny = self.config.thing.other[3](x)\nreturn y * self.factor",
        1,
    ),
    "a number loses nothing": ("s = 2 * self.factor\ns *= 3\nreturn x * s", 1),
    "a number in place leaves the factor": ("s = self.factor\ns *= 2\nreturn x * self.factor", 1),
    "a dict": ("kw = dict(scale=self.factor)\nreturn x * kw['scale']", 1),
    "a nested function": ("def scale(t):\n    return t * self.factor\nreturn scale(x)", 1),
    "a lambda": ("return (lambda t: t * self.factor)(x)", 1),
    "a try": ("try:\n    y = x * self.factor\nfinally:\n    pass\nreturn y", 1),
}


@pytest.mark.parametrize("name", BODIES)
def test_counts(tmp_path: Path, name: str) -> None:
    body, expected = BODIES[name]
    reply = count(tmp_path, moe(ROUTE + body if "w" in body else body))
    assert set(outcomes(reply)) == {expected}, (table(reply), [world["unknown"] for world in reply["worlds"]])
    assert reply["complete"]


UNKNOWN = {
    "a kernel takes the factor": ("y = torch.ops.lib.kernel(x, w, self.factor)\nreturn y", "kernel takes the factor"),
    "a kernel takes it and writes": ("y = torch.empty_like(x)\nmylib.run(x, y, self.factor)\nreturn y", "mylib.run"),
    "a kernel takes it and writes its input": ("mylib.run(x, self.factor)\nreturn x", "mylib.run takes the factor"),
    "a kernel takes an object that holds it": ("return mylib.run(x, self)", "mylib.run takes the factor"),
    "only some of it": ("y = self.experts(x, w)\ny[:, :-1] *= self.factor\nreturn y", "different powers"),
    "one masked part": ("y = self.experts(x, w)\ny[x > 0] *= self.factor\nreturn y", "different powers"),
    "not linear": ("return (x * self.factor).softmax(-1)", "isn't linear"),
    "a square root": ("return (x * self.factor).sqrt()", "raised to"),
    "one of two parts": ("a = self.experts(x, w)\nb = self.config.more(x, w)\nreturn a * self.factor + b", "different"),
    "a computed attribute": ("return x * getattr(self.config, self.config.key)", "name that isn't known"),
    "exec": ("exec('y = x')\nreturn x", "exec"),
    "a function handed over": ("return mylib.map(lambda t: t * self.factor, x)", "names the factor"),
    "perhaps a copy": ("y = self.experts(x, w)\nz = y.contiguous()\nz *= self.factor\nreturn y", "different powers"),
    "nothing written": ("return torch.empty_like(x)", "never written"),
}


@pytest.mark.parametrize("name", UNKNOWN)
def test_what_cannot_be_known_is_never_a_count(tmp_path: Path, name: str) -> None:
    body, reason = UNKNOWN[name]
    reply = count(tmp_path, moe(ROUTE + body if "w" in body else body, before="import mylib\n"))
    assert set(outcomes(reply)) == {"?"}, table(reply)
    assert reason in reply["worlds"][0]["unknown"]


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        ("return x * self.factor", "multiply"),
        ("y = x.clone()\ny *= self.factor\nreturn y", "in-place"),
        ("y = self.experts(x, logits)\nreturn x.add(y, alpha=self.factor)", "alpha"),
        ("return torch.ops.lib.kernel(x, self.factor)", "kernel"),
        ("return x / self.factor", "reciprocal"),
        (ROUTE + "topk_weights = w * self.factor\nreturn topk_weights", "multiply"),
    ],
)
def test_sites_say_how_and_where(tmp_path: Path, body: str, kind: str) -> None:
    reply = count(tmp_path, moe(body))
    assert kinds(reply) == [kind]
    site = reply["sites"][0]
    assert site["symbol"] == "Moe.forward"
    assert "self.factor" in site["text"]


def test_a_loop_of_unknown_length_is_a_question(tmp_path: Path) -> None:
    reply = count(tmp_path, moe("for _ in range(self.config.n):\n    x = x * self.factor\nreturn x"))
    assert table(reply) == {
        "rounds of range(config.n) is 1": 1,
        "rounds of range(config.n) is 2": 2,
        "rounds of range(config.n) is 0": 0,
    }


def test_a_loop_over_slices_covers_the_whole(tmp_path: Path) -> None:
    body = """
        for i in range(self.config.chunks):
            part = x[i * 4 : (i + 1) * 4]
            part.mul_(self.factor)
        return x
        """
    reply = count(tmp_path, moe(body))
    assert {key: value for key, value in table(reply).items() if not key.endswith("is 0")} == {
        "rounds of range(config.chunks) is 1": 1,
        "rounds of range(config.chunks) is 2": 1,
    }


def test_kernels_of_the_sinks_data(tmp_path: Path) -> None:
    sinks = [
        {"name": "gate", "params": ["logits", "k", "scale", "apply"], "factor": "scale", "effect": "depends",
         "when": "apply", "returns": ["routed", "ids"], "source": "here"},
        {"name": "reduce", "params": ["x", "out", "scale"], "factor": "scale", "effect": "applies",
         "linear_in": ["x"], "writes": ["out"], "returns": "other", "source": "here"},
    ]  # fmt: skip
    body = """
        w, ids = mylib.gate(logits, 8, self.factor, self.config.fuse)
        y = mylib.experts(x, w, ids)
        out = torch.empty_like(x)
        mylib.reduce(y, out, 1.0 if self.config.fuse else self.factor)
        return out
        """
    reply = count(tmp_path, moe(body, before="import mylib\n"), sinks=sinks)
    assert outcomes(reply) == [1]
    assert any("mylib.experts is linear" in one for one in reply["assumptions"])


def test_a_tuple_and_a_record_come_out(tmp_path: Path) -> None:
    files = """\
        from typing import NamedTuple
        import torch

        class Out(NamedTuple):
            weights: torch.Tensor
            ids: torch.Tensor

        def select(logits: torch.Tensor, factor: float, apply: bool = False):
            weights, ids = torch.topk(logits, 8)
            if apply:
                weights *= factor
            return Out(weights, ids)
        """
    reply = count(tmp_path, files, "moe.py:select")
    assert table(reply) == {"apply is false": 0, "apply is true": 1}
