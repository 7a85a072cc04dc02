"""Every playbook that comes with sleuth passes the check, and a run of it over a small patched tree reaches its end."""

import re
from pathlib import Path

import pytest

from sleuth.agent.exitcodes import ExitCode
from sleuth.agent.session import Options, start
from sleuth.playbooks import loader
from sleuth.playbooks.functions import FUNCTIONS
from sleuth.playbooks.schema import END

from ..support import ROOT
from ..support.investigation import PATCH, Scene, case_in, exit_code, lay

BUILTIN = loader.available()


def test_there_are_some() -> None:
    assert {"double-scaling", "removed-assertion", "default-changed", "dtype-downcast"} <= {p.stem for p in BUILTIN}


@pytest.mark.parametrize("path", BUILTIN, ids=lambda path: path.stem)
def test_it_passes_the_check_and_says_what_it_is_for(path: Path) -> None:
    playbook = loader.read(path).playbook
    assert len(playbook.title) < 80
    assert len(playbook.about) > 80
    assert all(p.about and p.default is not None for p in playbook.parameters.values())


@pytest.mark.parametrize("patched", [True, False], ids=["one patch", "the source alone"])
@pytest.mark.parametrize("path", BUILTIN, ids=lambda path: path.stem)
def test_a_run_reaches_its_end(path: Path, patched: bool, tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    if patched:
        lay(tmp_path, {"p.patch": PATCH.replace("+    return weights", "+    return weights * routed_scaling_factor")})
        scene.description = {"name": "f", "stock": "tree", "patches": ["p.patch"]}
    files = {name: "pkg/model.py" for name, p in loader.read(path).playbook.parameters.items() if p.file}
    folder = start(scene.home, scene.yaml, path, files, {}, Options())
    case = case_in(folder)
    assert len(case.examined) == 1
    assert case.weighed[-1].next == END
    assert exit_code(folder) in (ExitCode.CLEAN, ExitCode.INCONCLUSIVE, ExitCode.FAILED)
    assert case.troubles == []
    unapplied = [e.note for e in case.evidence if e.note.startswith("the rules can't be applied")]
    assert not unapplied


def test_the_guide_lists_every_function() -> None:
    guide = (ROOT / "docs" / "playbooks.md").read_text(encoding="utf-8")
    (listed,) = re.findall(r"these functions:\s*(.*?)\.\n", guide, re.DOTALL)
    assert set(re.findall(r"`(\w+)`", listed)) == set(FUNCTIONS)
