"""What sleuth's exit status means."""

from enum import IntEnum


class ExitCode(IntEnum):
    """One meaning each; CI may rely on them."""

    CLEAN = 0
    """Nothing was found against any suspect that was examined."""
    GUILTY = 1
    """A suspect is convicted."""
    USAGE = 2
    """The command line, a sleuth.yaml, a playbook or a patch is at fault."""
    INCONCLUSIVE = 3
    """Something speaks against a suspect without proof, or a hypothesis could not be decided."""
    FAILED = 4
    """A tool or the sandbox failed, so the answer is missing."""
    BUDGET = 5
    """The budget was spent before the end."""
    INTERNAL = 70
    """An error in sleuth itself (sysexits.h: EX_SOFTWARE)."""
    INTERRUPTED = 130
    """Stopped by the user; the case can be resumed."""
