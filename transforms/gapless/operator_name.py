"""Who speaks where an operator's word is kept: the user of the operating system, unless a name is given."""

import getpass
import os


def operator_name() -> str:
    """The user's name; its number where there is no entry for it, as in some containers."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return f"uid {os.getuid()}"
