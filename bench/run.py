"""How long things take beside the raw command, in one run: `make bench` prints the table."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import steps
import tracing
from timing import Job, Row, against, in_turn, table

from sleuth.sandbox.backends import open_sandbox
from sleuth.sandbox.base import Command
from sleuth.sandbox.binaries import find_rg
from sleuth.sandbox.clone import make_clone, tree_digest
from sleuth.sandbox.deployment import Deployment, load_deployment
from sleuth.sandbox.errors import SleuthError
from sleuth.sandbox.wheel import fetch_source
from sleuth.tools.base import ToolContext
from sleuth.tools.call import Artefact, Caller
from sleuth.tools.registry import get_tool

ROOT = Path(__file__).resolve().parents[1]
DEMO = ROOT / "playbooks" / "demo" / "double-scaling"
SOURCE = "sglang==0.5.23"
PATTERN = "routed_scaling_factor"
FLAGS = ["--json", "--no-config", "--text", "--no-ignore", "--hidden", "--no-require-git", "--glob=!.git"]
"""What the grep tool gives rg."""


def quiet(argv: list[str], cwd: Path | None = None) -> None:
    """Run a raw command with its output going to a file, as a sandboxed one's does."""
    with tempfile.TemporaryFile() as out:
        code = subprocess.run(argv, cwd=cwd, stdin=subprocess.DEVNULL, stdout=out, stderr=out, check=False).returncode
    if code:
        raise SystemExit(f"{argv[0]} ended with {code}")


def greps(tree: Path, scratch: Path) -> Iterator[Row]:
    deployment = Deployment(name="bench", tree=tree)
    sandbox = open_sandbox("auto", make_clone(deployment, scratch / "none"), scratch)
    search = [*FLAGS, "-e", PATTERN, "--", "./"]

    def keep(name: str, path: Path) -> Artefact:
        return Artefact(name=name, digest="-", size=path.stat().st_size)

    def sandboxed() -> None:
        done = sandbox.exec(Command([sandbox.rg, *search], bare=True))
        assert done.exit_code == 0, done.error_text()
        done.stdout.unlink()
        done.stderr.unlink()

    def tool() -> None:
        found = Caller(ToolContext(sandbox, deployment), keep, scratch).call(get_tool("grep"), {"pattern": PATTERN})
        assert found.status == "ok", found.text

    raw, inside, whole = in_turn(40, Job(lambda: quiet([find_rg(), *search], cwd=tree)), Job(sandboxed), Job(tool))
    yield against(f"rg in the sandbox, {SOURCE}", inside, raw, 1.3, "raw rg")
    yield against("the whole grep tool", whole, raw, None, "raw rg")


def clones(scratch: Path) -> Iterator[Row]:
    deployment = load_deployment(DEMO)
    assert deployment.stock is not None
    tree = fetch_source(deployment.stock.removeprefix("pypi:"))
    copy = scratch / "copy"

    def clear() -> None:
        shutil.rmtree(copy, ignore_errors=True)

    def clear_layers() -> None:
        shutil.rmtree(scratch / "layers", ignore_errors=True)

    copying = Job(lambda: quiet(["cp", "-a", str(tree), str(copy)]), prepare=clear)
    cloning = Job(lambda: make_clone(deployment, scratch / "layers"), prepare=clear_layers)
    raw, ours = in_turn(10, copying, cloning)
    yield against("clone with one patch, without its digest", ours, raw, 0.1, "cp -a of the tree")


def digests(tree: Path) -> Iterator[Row]:
    raw, ours = in_turn(
        5,
        Job(lambda: quiet(["find", str(tree), "-type", "f", "-exec", "sha256sum", "{}", "+"])),
        Job(lambda: tree_digest(tree)),
    )
    yield against(f"digest of the tree, {SOURCE}", ours, raw, None, "sha256sum of its files")


def starts() -> Iterator[Row]:
    script = Path(sys.executable).with_name("sleuth")
    argv = [str(script)] if script.exists() else [sys.executable, "-c", "from sleuth.agent.cli.main import run; run()"]
    raw, ours = in_turn(40, Job(lambda: quiet([sys.executable, "-c", "pass"])), Job(lambda: quiet([*argv, "--help"])))
    yield against("sleuth --help", ours, raw, 4, "python -c pass")


def rows() -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as scratch:
        tree = fetch_source(SOURCE)
        yield from greps(tree, Path(scratch))
        yield from clones(Path(scratch))
        yield from digests(tree)
        yield from starts()
        yield from steps.measure()
        yield from tracing.measure(tree)


def main() -> int:
    try:
        for line in table(rows()):
            print(line, flush=True)
    except SleuthError as error:
        print(f"bench: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
