"""The tracer on a real release: cold, from the cache, and how much memory it takes at most."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from timing import Job, Row, against, in_turn

TOOLS = Path(__file__).resolve().parents[1] / "tools"
FACTOR = "routed_scaling_factor"
ENTRY = "sglang/srt/models/deepseek_v2.py::DeepseekV2MoE.forward_normal"
FACTS = {
    "platform": "cuda",
    "quant_method": "Fp8MoEMethod",
    "moe_runner_backend": "triton",
    "moe_a2a_backend": "none",
}
ROUNDS = 3
SECONDS = 3.0
MEGABYTES = 300.0
TRACE = """
import json, resource, sys
sys.path.insert(0, sys.argv[1])
from inside.trace_factor import run
found = run(json.loads(sys.argv[2]))
worlds = [w for t in found["tables"] for w in t["worlds"] if not w["aside"]]
counts = sorted({str(w["count"]) for w in worlds})
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(json.dumps({"peak": peak, "counts": counts, "files": list(found["files"])}))
"""
PARSE = """
import ast, json, pathlib, sys
for path in json.loads(sys.argv[2]):
    ast.parse(pathlib.Path(sys.argv[1], path).read_bytes())
"""


def measure(tree: Path) -> Iterator[Row]:
    """Rows for one entry whose configuration is known, beside Python's own parser on the files that it reads."""
    request = json.dumps({"root": str(tree), "factor": FACTOR, "entry": ENTRY, "facts": FACTS})
    argv = [sys.executable, "-c", TRACE, str(TOOLS), request]
    said: dict[str, Any] = json.loads(_run(argv))
    files = said["files"]
    parse = Job(lambda: _run([sys.executable, "-c", PARSE, str(tree), json.dumps(files)]))
    raw, ours = in_turn(ROUNDS, parse, Job(lambda: _run(argv)))
    yield against("a cold trace, the script alone", ours, raw, None, f"ast.parse of its {len(files)} files")
    yield Row("the same", min(ours), "s", SECONDS, f"the best of {ROUNDS}; counts {', '.join(said['counts'])}")
    yield Row("its memory at most", said["peak"] / 1024, "MB", MEGABYTES, "resident, with Python itself")
    yield from _kept(tree)


def _kept(tree: Path) -> Iterator[Row]:
    """`sleuth trace` again and again: all but the first answer come from the cache."""
    script = Path(sys.executable).with_name("sleuth")
    argv = [str(script)] if script.exists() else [sys.executable, "-c", "from sleuth.agent.cli.main import run; run()"]
    argv += ["trace", FACTOR, "--tree", str(tree), "--entry", ENTRY]
    argv += [part for key, value in FACTS.items() for part in ("--set", f"{key}={value}")]
    with tempfile.TemporaryDirectory() as cache:
        seconds = []
        for _ in range(ROUNDS + 1):
            start = time.perf_counter()
            _run(argv, SLEUTH_CACHE=cache)
            seconds.append(time.perf_counter() - start)
    first, again = seconds[0], seconds[1:]
    yield against("sleuth trace, a kept answer", again, [first] * ROUNDS, 0.5, "the first answer")


def _run(argv: list[str], **environment: str) -> str:
    done = subprocess.run(argv, stdout=subprocess.PIPE, check=True, env={**os.environ, **environment})
    return done.stdout.decode()
