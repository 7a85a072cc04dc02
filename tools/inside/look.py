"""Say of each path whether it is in the tree, and what it is."""

from __future__ import annotations

import os
from typing import Any

from .fail import InsideError
from .paths import from_shown, resolve, to_shown


def run(request: dict[str, Any]) -> dict[str, Any]:
    """`{"paths": [...]}` → what is wrong with each, which are plain files, and all as shown, relative to the root."""
    root, problems, files, names = request["root"], [], [], []
    for name in request["paths"]:
        try:
            path = resolve(root, name)
        except InsideError as error:
            problems.append(str(error))
            continue
        plain = os.path.relpath(os.path.normpath(os.path.join(root, from_shown(name))), root)
        names.append(to_shown(plain))
        if os.path.isfile(path):
            files.append(names[-1])
        elif not os.path.isdir(path):
            problems.append(f"{name}: not a regular file (a pipe, socket or device)")
    return {"problems": problems, "files": files, "names": names}
