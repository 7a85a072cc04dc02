"""`sleuth.yaml`: the description of a deployment under investigation."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, PrivateAttr, model_validator

from .base import Limits
from .errors import ConfigError
from .yamlfile import Document, Problem, did_you_mean, fail, load, validate

PYPI = "pypi:"


class Section(BaseModel):
    """Base of every part of sleuth.yaml: unknown keys are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)


def _words(value: Any) -> Any:
    """A command line given as one string is split as a shell would, without running one."""
    if isinstance(value, list):
        return [_number(word) for word in value]
    if not isinstance(value, str):
        return value
    try:
        return shlex.split(value)
    except ValueError as error:
        raise ValueError(f"not a command line: {error}") from None


def _variable(value: Any) -> Any:
    if isinstance(value, bool):
        raise ValueError('an environment variable is text: write "1" or "true" in quotes')
    return _number(value)


def _number(value: Any) -> Any:
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else value


def _listed(value: Any) -> Any:
    """One entry may be written without the brackets of a list."""
    return [value] if isinstance(value, str) else value


Words = Annotated[list[str], BeforeValidator(_words)]
Variable = Annotated[str, BeforeValidator(_variable)]


class PatchEntry(Section):
    """One patch between stock and deployed: a file, or a folder of `*.patch` and `*.diff` taken in name order."""

    path: Path
    id: str | None = Field(default=None, pattern=r"^[A-Za-z0-9][A-Za-z0-9._+-]*$")
    """The suspect's name; the file's stem by default."""
    title: Annotated[str, AfterValidator(lambda text: " ".join(text.split()))] = ""
    """What it claims to do; the patch's Subject line by default."""

    @model_validator(mode="before")
    @classmethod
    def _from_path(cls, value: Any) -> Any:
        return {"path": value} if isinstance(value, str) else value


class Launch(Section):
    """How the server is started. Numbers are taken as they are written: `0.10` stays `0.10`."""

    args: Words = []
    """The command line, as a list or as one string."""
    env: dict[str, Variable] = {}
    """Environment variables that the server sees."""


class ModelFiles(Section):
    """The served model."""

    name: str = ""
    config: Path | None = None
    """Its config.json."""


class Process(Section):
    """A running server on this machine."""

    pid: int = Field(gt=0, strict=True)


class Container(Section):
    """A container as `docker inspect` describes it."""

    inspect: Path
    """A file that holds the output of `docker inspect NAME`."""


class LimitsSection(Section):
    """Limits of one sandboxed call."""

    seconds: float = Field(default=Limits.seconds, gt=0, le=86_400)
    memory_mb: int = Field(default=Limits.memory_bytes >> 20, gt=0, le=1 << 24, strict=True)
    processes: int = Field(default=Limits.processes, gt=0, le=1 << 22, strict=True)
    output_mb: int = Field(default=Limits.output_bytes >> 20, gt=0, le=1 << 20, strict=True)

    def limits(self) -> Limits:
        """The same in the sandbox's own units: seconds and bytes."""
        return Limits(self.seconds, self.memory_mb << 20, self.processes, self.output_mb << 20)


class SandboxSection(Section):
    """Where calls run."""

    backend: Literal["auto", "bubblewrap", "docker"] = "auto"
    limits: LimitsSection = LimitsSection()


class Deployment(Section):
    """The running thing that misbehaves, and what to compare it with.

    Give `stock` with `patches` (sleuth applies them in its clone), or `tree` (the patched source) with `stock`, or
    `tree` with `patches` (already in it; stock is then the tree with them taken out), or a `tree` alone.
    """

    version: Literal[1] = 1
    name: str = Field(min_length=1, pattern=r"^[^\x00-\x1f\x7f]+$")
    engine: Literal["sglang", "vllm", "other"] = "other"
    tree: Path | None = None
    """The source as deployed."""
    stock: str | None = None
    """The same release unpatched: a folder, or `pypi:NAME==VERSION` for the source in that wheel."""
    patches: Annotated[list[PatchEntry], BeforeValidator(_listed)] = []
    symptom: str = ""
    """What is seen to be wrong, in the words of whoever saw it."""
    oracle: Words | None = None
    """A command that exits 0 when the deployment is good and 1 when it is bad."""
    model: ModelFiles = ModelFiles()
    launch: Launch = Launch()
    process: Process | None = None
    container: Container | None = None
    endpoint: str | None = Field(default=None, pattern=r"^https?://[^/\s]+")
    gpus: list[int] | Literal["all"] | None = None
    sandbox: SandboxSection = SandboxSection()

    _document: Document = PrivateAttr(default_factory=lambda: Document(Path("sleuth.yaml"), {}, {}, {}))

    @model_validator(mode="after")
    def _something_to_look_at(self) -> Deployment:
        if self.tree is None and self.stock is None:
            raise ValueError("name the source: `tree` (as deployed), or `stock` with `patches`")
        return self

    @property
    def path(self) -> Path:
        """The file that this description was read from."""
        return self._document.path

    def where(self, *loc: str | int) -> str:
        """`file:line` of a key, for a reader who wants to know where a value came from."""
        return f"{self.path.name}:{self._document.line(loc)}"

    def problem(self, text: str, *loc: str | int) -> ConfigError:
        """An error about the key at `loc`."""
        return fail([self._document.problem(loc, text)])


def load_deployment(
    path: Path, *, stock: str | None = None, tree: str | None = None, base: Path | None = None
) -> Deployment:
    """Read and check a sleuth.yaml; paths in it are taken from the file's own folder.

    Args:
        path: the file, or a folder that holds a `sleuth.yaml`.
        stock: replaces the file's `stock`, relative to the working directory.
        tree: replaces the file's `tree`, likewise.
        base: the folder that the file's paths are taken from, when it isn't the file's own.

    Raises:
        ConfigError: every problem found, each with file, line, key and what would have worked.
    """
    document = load(path / "sleuth.yaml" if path.is_dir() else path)
    if isinstance(document.value, dict):
        typed = {"stock": stock and _typed_source(stock), "tree": tree and _typed_source(tree)}
        document.value.update({k: v for k, v in typed.items() if v})
    deployment = validate(document, Deployment)
    resolved = _resolve(deployment, document, (base or document.path.parent).absolute())
    resolved._document = document
    return resolved


def _typed_source(text: str) -> str:
    return text if text.startswith(PYPI) else str(Path(text).expanduser().absolute())


def _resolve(deployment: Deployment, document: Document, base: Path) -> Deployment:
    """The deployment with absolute paths, after checking that each exists."""
    problems: list[Problem] = []

    def existing(value: Path | str, kind: str, *loc: str | int) -> Path:
        try:
            found = base / Path(value).expanduser()
            if not (found.is_dir() if kind == "folder" else found.exists() if kind == "any" else found.is_file()):
                problems.append(document.problem(loc, _missing(found, kind)))
        except (OSError, RuntimeError) as error:  # no access, a name too long, no such user's home
            problems.append(document.problem(loc, f"{value}: {getattr(error, 'strerror', None) or error}"))
            return base
        return found

    changes: dict[str, Any] = {"launch": _as_written(deployment.launch, document)}
    if deployment.tree is not None:
        changes["tree"] = existing(deployment.tree, "folder", "tree")
    if deployment.stock is not None and not deployment.stock.startswith(PYPI):
        changes["stock"] = str(existing(deployment.stock, "folder", "stock"))
    changes["patches"] = [
        entry.model_copy(update={"path": existing(entry.path, "any", "patches", n)})
        for n, entry in enumerate(deployment.patches)
    ]
    if deployment.model.config is not None:
        config = existing(deployment.model.config, "file", "model", "config")
        changes["model"] = deployment.model.model_copy(update={"config": config})
    if deployment.container is not None:
        inspect = existing(deployment.container.inspect, "file", "container", "inspect")
        changes["container"] = Container(inspect=inspect)
    if problems:
        raise fail(problems)
    return deployment.model_copy(update=changes)


def _as_written(launch: Launch, document: Document) -> Launch:
    """Numbers among arguments and variables as the file spells them: the server got `0.10`, not 0.1."""
    env = {name: document.written.get(("launch", "env", name), value) for name, value in launch.env.items()}
    args = [document.written.get(("launch", "args", n), word) for n, word in enumerate(launch.args)]
    return Launch(args=args, env=env)


def _missing(path: Path, kind: str) -> str:
    if path.exists():
        return f"{path} is not a {kind}"
    parent = path.parent
    near = did_you_mean(path.name, [p.name for p in parent.iterdir()]) if parent.is_dir() else ""
    return f"{path} doesn't exist{near if 'did you mean' in near else ''}"


def model_config(deployment: Deployment) -> dict[str, Any]:
    """The served model's config.json as a dict; empty when none is named.

    Raises:
        ConfigError: the file isn't a JSON object.
    """
    path = deployment.model.config
    if path is None:
        return {}
    try:
        value = json.loads(path.read_bytes())
    except (ValueError, OSError, RecursionError) as error:
        raise deployment.problem(f"{path} can't be read as JSON: {error}", "model", "config") from error
    if not isinstance(value, dict):
        raise deployment.problem(f"{path} holds a {type(value).__name__}, not an object", "model", "config")
    return value
