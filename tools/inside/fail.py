"""The one exception a script inside the sandbox raises for its user."""


class InsideError(Exception):
    """No answer can be given; the message names the value and what would have worked."""
