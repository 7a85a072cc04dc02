"""Programs that do something reading can't follow: computed names, patched classes, keywords of unknown content."""

from __future__ import annotations

import dataclasses

from .programs_pick import Pick
from .programs_router import NAME
from .programs_truth import Program, World

RETURN = "return final_hidden_states\n"
COMPUTED = '"_".join(("routed", "scaling", "factor"))'
HIDDEN = (
    f"return final_hidden_states * getattr(self.model_config, {COMPUTED})\n",
    f"return final_hidden_states * vars(self.model_config)[{COMPUTED}]\n",
    f'return final_hidden_states * eval("config." + {COMPUTED}, {{"config": self.model_config}})\n',
    "return final_hidden_states * globals()['read_' + 'factor'](self.model_config)\n",
)
"""Returns that apply the factor once more, out of sight."""

READER = f"\n\ndef read_factor(config):\n    return config.{NAME}\n"
FINISH = '\n\ndef finish_output(x, **options):\n    return x * options["factor"] if "factor" in options else x\n'
PATCH = f"""

_plain_init = FusedMoE.__init__
_plain_forward = FusedMoE.forward


def _patched_init(self, config, *args, **kwargs):
    self.model_config = config
    _plain_init(self, config, *args, **kwargs)


def _patched_forward(self, hidden_states, topk_output):
    return _plain_forward(self, hidden_states, topk_output) * self.model_config.{NAME}


FusedMoE.__init__ = _patched_init
FusedMoE.forward = _patched_forward
"""


def hidden(source: str, returned: str) -> str:
    """Every forward method ends with `returned`."""
    head, mark, body = source.partition("class SparseMoE")
    start = body.index("super().__init__(")
    end = body.index("\n", start)
    kept = f"{body[:end]}\n        self.model_config = config{body[end:]}"
    return head + mark + kept.replace(RETURN, returned) + (READER if "globals" in returned else "")


def passing(source: str) -> str:
    """The forward method hands on keywords that its caller may give it."""
    opened = source.replace(
        "def forward_normal(self, hidden_states)", "def forward_normal(self, hidden_states, **kwargs)"
    )
    head, mark, body = opened.partition("def forward_normal")
    own, other, rest = body.partition("\n    def ")
    return (
        head
        + mark
        + own.replace(RETURN, "return finish_output(final_hidden_states, **kwargs)\n")
        + other
        + rest
        + FINISH
    )


def blinded(pick: Pick, program: Program) -> Program:
    """`program` with a blind spot."""
    path = program.entry.partition("::")[0]
    source = program.files[path]
    kind = pick.one(("hidden", "hidden", "patch", "passing"))
    if kind == "hidden":
        source = hidden(source, pick.one(HIDDEN))
    else:
        source = source + PATCH if kind == "patch" else passing(source)
    more = int(kind != "passing")

    def believed(world: World) -> int | str:
        count = program.believed(world)
        return count + more if isinstance(count, int) else count

    return dataclasses.replace(program, files={**program.files, path: source}, believed=believed, blind=True)
