"""One investigation from start to end: what the command line, the TUI and CI all stand on."""

from __future__ import annotations

import contextlib
import hashlib
import shutil
import sqlite3
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from ..playbooks import loader
from ..playbooks.loader import Loaded
from ..sandbox.backends import open_sandbox
from ..sandbox.clone import make_clone, tree_digest
from ..sandbox.deployment import Deployment, load_deployment
from ..sandbox.errors import PatchError, SandboxError, UsageError
from ..tools.base import ToolContext
from ..tools.call import Caller
from ..tools.inside_call import call_inside
from ..tools.redact import redact_value
from .approval import AllowAll, Approver
from .budget import Budget
from .case import CaseFile, fold
from .events import AnyEvent, CaseOpened, CaseResumed, OriginalsChecked, SuspectsListed, Trouble
from .log import EventLog, Listener, read_log
from .playbook_policy import PlaybookPolicy
from .store import CaseError, CaseFolder
from .suspects import MakeCall, SuspectsUnknown, list_suspects
from .verdicts import close

DISTRIBUTION = "sleuth-llm"


@dataclass(frozen=True)
class Options:
    """How a run is made.

    Attributes:
        listen: told of every event as it is written.
        approver: asked before every tool call.
        max_calls, max_seconds: budget; None is no limit.
    """

    listen: Listener | None = None
    approver: Approver = field(default_factory=AllowAll)
    max_calls: int | None = None
    max_seconds: float | None = None


def start(
    home: Path,
    description: Path,
    playbook: Path,
    given: dict[str, str],
    overrides: dict[str, str],
    options: Options,
) -> CaseFolder:
    """Open a new case and work on it to its end.

    Args:
        home: folder that holds `cases/`.
        description: the sleuth.yaml.
        playbook: the playbook's file.
        given: parameters as typed.
        overrides: `stock` and `tree` of the command line.
        options: listener, approver, budget.

    Returns:
        The case's folder; its last event says how it ended.

    Raises:
        UsageError: the description, the playbook, a parameter or a patch is at fault; no case is left behind.
        SandboxUnavailable: no sandbox can be had; no case is left behind.
        KeyboardInterrupt: stopped by the user; the case can be resumed.
    """
    loaded = loader.read(playbook)
    params = loader.parameters(loaded.playbook, given)
    _refuse_secrets(params)
    deployment = load_deployment(description, stock=overrides.get("stock"), tree=overrides.get("tree"))
    _refuse_inside(home, deployment)
    folder = CaseFolder.create(home, loaded.playbook.name)
    try:
        shutil.copyfile(playbook, folder.inputs / f"{loaded.playbook.name}.yaml")
        with _Run(folder, deployment, loaded, params, overrides, options) as run:
            run.open()
            run.work()
    finally:
        if not folder.events.exists():
            shutil.rmtree(folder.path, ignore_errors=True)
    return folder


def resume(folder: CaseFolder, options: Options) -> CaseFolder:
    """Go on with a case that was interrupted or killed; a finished one is left as it is.

    Raises:
        CaseError: another process works on it, its log was changed, or the source, the description or the playbook is
            no longer what it was about.
        SandboxUnavailable, KeyboardInterrupt: as `start`.
    """
    case = fold(read_log(folder.events))
    opened = case.opened
    if opened is None:
        raise CaseError(f"{folder.id}: ended before it began; start a new case")
    if case.closed is not None and not case.troubles:
        with contextlib.closing(EventLog(folder.events)):
            folder.clear()  # a run that was killed right after its last event
        return folder
    loaded = loader.read(folder.inputs / f"{opened.playbook}.yaml")
    deployment = load_deployment(
        Path(opened.description), stock=opened.overrides.get("stock"), tree=opened.overrides.get("tree")
    )
    _refuse_other(folder, "playbook", loaded.digest, opened.playbook_digest)
    _refuse_other(folder, "description", description_digest(deployment), opened.description_digest)
    try:
        with _Run(folder, deployment, loaded, opened.params, opened.overrides, options) as run:
            run.reopen()
            run.work()
    except PatchError as error:  # it did apply when the case was opened
        text = f"{folder.id}: the source or one of its patches changed since this case was opened: {error}"
        raise CaseError(text) from error
    return folder


def _refuse_other(folder: CaseFolder, what: str, now: str, then: str) -> None:
    if now != then:
        raise CaseError(
            f"{folder.id}: the {what} changed since this case was opened "
            f"({what} {then[:12]}, now {now[:12]}); start a new case"
        )


def _refuse_secrets(params: dict[str, Any]) -> None:
    """A secret can't be recorded, and a question that isn't recorded can't be asked again."""
    for name, value in params.items():
        if redact_value(value) != value:
            raise UsageError(
                f"--param {name}: its value looks like a secret, which sleuth doesn't record; name another"
            )


def _refuse_inside(home: Path, deployment: Deployment) -> None:
    """Cases may not be written into the source that they are about."""
    roots = [deployment.tree] if deployment.tree else []
    if deployment.stock and not deployment.stock.startswith("pypi:"):
        roots.append(Path(deployment.stock))
    for root in roots:
        if home.resolve().is_relative_to(root.resolve()):
            raise UsageError(
                f"{home} lies inside {root}, which sleuth never writes to; choose another place with --home"
            )


def description_digest(deployment: Deployment) -> str:
    """SHA-256 over the sleuth.yaml and the files it names that tools read, besides the source."""
    total = hashlib.sha256(deployment.path.read_bytes())
    for path in (deployment.model.config, deployment.container and deployment.container.inspect):
        total.update(hashlib.sha256(path.read_bytes() if path else b"").digest())
    return total.hexdigest()


class _Run:
    """One process's work on one case."""

    def __init__(
        self,
        folder: CaseFolder,
        deployment: Deployment,
        loaded: Loaded,
        params: dict[str, Any],
        overrides: dict[str, str],
        options: Options,
    ) -> None:
        self.folder, self.deployment, self.loaded = folder, deployment, loaded
        self.params, self.overrides, self.options = params, overrides, options
        self.stack = contextlib.ExitStack()

    def __enter__(self) -> _Run:
        with contextlib.ExitStack() as stack:
            existed = self.folder.events.exists()
            if existed:
                self._open_log(stack)
            stack.enter_context(self.folder.workspace())
            self.clone = make_clone(self.deployment, self.folder.layers)
            limits = self.deployment.sandbox.limits.limits()
            self.sandbox = open_sandbox(self.deployment.sandbox.backend, self.clone, self.folder.scratch, limits)
            self.digests = self.clone.digests()
            self.digest = self.clone.digest(self.digests)
            self._check_files()
            if not existed:
                self._open_log(stack)
            self.stack = stack.pop_all()
        return self

    def _check_files(self) -> None:
        """See that parameters which name files of the clone do, before anything is asked."""
        for name, spec in self.loaded.playbook.parameters.items():
            if spec.file:
                seen = call_inside(self.sandbox, "look", {"paths": [self.params[name]]})
                if seen.value["problems"]:
                    raise UsageError(f"--param {name}: {seen.value['problems'][0]}")

    def __exit__(self, *_: object) -> None:
        self.stack.close()

    def _open_log(self, stack: contextlib.ExitStack) -> None:
        self.log = EventLog(self.folder.events, self.options.listen)
        stack.callback(self.log.close)
        self.case: CaseFile = fold(self.log.records)

    def emit(self, event: AnyEvent) -> None:
        """Write an event, then take it into the case file."""
        self.case.add(self.log.append(event).event)

    def open(self) -> None:
        """Write what the case is about."""
        self.emit(
            CaseOpened(
                case=self.folder.id,
                sleuth=own_version(),
                deployment=self.deployment.name,
                symptom=self.deployment.symptom,
                description=str(self.deployment.path.absolute()),
                description_digest=description_digest(self.deployment),
                overrides=self.overrides,
                playbook=self.loaded.playbook.name,
                playbook_digest=self.loaded.digest,
                params=self.params,
                clone=self.digest,
                originals={str(root): self.digests[root] for root in self.clone.originals()},
                notes=self.clone.notes + self.sandbox.notes,
                max_calls=self.options.max_calls,
                max_seconds=self.options.max_seconds,
            )
        )

    def reopen(self) -> None:
        """Check that the source is still what the evidence is about, and go on."""
        assert self.case.opened is not None
        _refuse_other(self.folder, "source or one of its patches", self.digest, self.case.opened.clone)
        self.emit(CaseResumed())

    def work(self) -> None:
        """Run the graph to its end; a sandbox that fails ends it with what is known, and says so."""
        try:
            self._run_graph()
        except SandboxError as error:
            self.emit(Trouble(what="sandbox", text=str(error)))
        except SuspectsUnknown as error:
            self.emit(Trouble(what="suspects", text=str(error)))
        except KeyboardInterrupt:
            self.emit(Trouble(what="interrupted", text="stopped by the user"))
            raise
        if self.case.closed is None:
            self.finish()

    def finish(self) -> None:
        """See that the originals are as they were, and close the case."""
        assert self.case.opened is not None
        if not self.case.originals_checked:
            before = self.case.opened.originals
            changed = [root for root, digest in before.items() if not _is_as_it_was(Path(root), digest)]
            self.emit(OriginalsChecked(changed=changed))
        self.emit(close(self.case))

    def _run_graph(self) -> None:
        from .checkpoint import checkpoints
        from .graph import Nodes, build, run

        caller = Caller(ToolContext(self.sandbox, self.deployment), self.folder.keep, self.folder.scratch)
        budget = Budget(self.options.max_calls, self.options.max_seconds)
        nodes = Nodes(self.case, self.emit, self._policy(), caller, self.options.approver, budget, self)
        try:
            with checkpoints(self.folder.checkpoint, self.folder.id) as saver:
                run(build(nodes, saver), self.folder.id)
        except sqlite3.Error as error:  # a full disk, most often; a damaged file is begun anew without a word
            raise CaseError(f"{self.folder.checkpoint}: {error}; the case can be resumed") from error

    def _policy(self) -> PlaybookPolicy:
        return PlaybookPolicy(self.loaded.playbook, self.params, self.digest, self.folder.read)

    def suspects(self, call: MakeCall) -> SuspectsListed:
        """The patches under suspicion, in the order that they will be looked at."""
        suspects = list_suspects(self.clone, self.digest, call, self.folder.read)
        examined = self._policy().examined(suspects)
        ordered = sorted(suspects, key=lambda s: s.id not in examined)
        return SuspectsListed(suspects=ordered, examined=examined, order="as listed; not ranked")


def _is_as_it_was(root: Path, digest: str) -> bool:
    try:
        return tree_digest(root) == digest
    except OSError:
        return False  # gone, or changing while it is read


def own_version() -> str:
    """The installed version of sleuth."""
    try:
        return version(DISTRIBUTION)
    except PackageNotFoundError:
        return "not installed"
