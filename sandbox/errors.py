"""What can go wrong below the tools.

    SleuthError                  every error a user can be shown; exit code 4 unless a subclass says otherwise
    ├── UsageError               the user's input is at fault (exit code 2)
    │   ├── ConfigError          sleuth.yaml or a playbook, with file, line and key
    │   ├── PatchError           a patch that can't be read or doesn't apply
    │   └── CommandError         a command line that no process can be started with
    └── SandboxError             the sandbox itself failed: never to be read as an empty answer
        ├── SandboxUnavailable   this machine can't provide it; the message says why and what to do
        └── SandboxDied          it was there and broke during a call

A command that fails inside a working sandbox is not an error: it is a `Completed` with an exit code.
"""


class SleuthError(Exception):
    """Base of every error that is shown to a user as one message, without a traceback."""


class UsageError(SleuthError):
    """The input names something that doesn't exist or isn't valid."""


class ConfigError(UsageError):
    """A YAML file that doesn't say something valid. The text holds one `file:line: key: problem` per line."""


class PatchError(UsageError):
    """A patch file that can't be parsed, or whose hunks don't fit the tree."""


class CommandError(UsageError):
    """A command line that no process can be started with: too long for the kernel, or with a NUL in it."""


class SandboxError(SleuthError):
    """The sandbox failed, as opposed to the command in it."""


class SandboxUnavailable(SandboxError):
    """No sandbox of this kind can be had on this machine."""


class SandboxDied(SandboxError):
    """The sandbox ended before the command could report how it went."""
