"""What every effect that writes files asks of its settings."""

import os

from gapless.effects.growing_file import COMPRESSIONS
from gapless.errors import ConfigurationError, EffectError


def local_folder(key: str, path: str) -> str:
    """The path, absolute. Raises ConfigurationError for URLs: only local folders can be synced and renamed in."""
    if not isinstance(path, str) or not path or "\0" in path:
        raise ConfigurationError(f"{key}: {path!r} is no folder")
    if "://" in path:
        raise ConfigurationError(f"{key}: {path!r} is a URL", remedy="files go to a local folder as yet")
    return os.path.abspath(path)


def require_compression(key: str, name: str) -> None:
    if name not in COMPRESSIONS:
        raise ConfigurationError(
            f"{key}: {name!r} is unknown", remedy=f"allowed are {', '.join(COMPRESSIONS)}"
        )


def require_text(what: str, text: str) -> None:
    """Raises EffectError for text with half of a surrogate pair, which UTF-8 has no bytes for."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise EffectError(f"{what} is no text that a file can hold: {text!r}") from error
