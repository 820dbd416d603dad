"""A job in the words of its file, with every default filled in: what `gapless check` shows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from gapless.paging.config_model import Duration

if TYPE_CHECKING:
    from gapless_pipelines.job.job import Job

_IS_DURATION = Duration.__metadata__[0]  # type: ignore[attr-defined]  # an Annotated has it, which mypy does not say
_UNITS = (("h", 3600), ("m", 60), ("s", 1))


def describe(job: Job) -> dict[str, object]:
    """JSON values only: `job` is the file, the other keys are those of the file; positions are text, secrets references."""
    words = _words(job.config)
    effect, dead_letters = job.effect(), job.dead_letters()
    ends = job.range()
    words["domain"] = job.domain.describe()
    words["range"] = {
        "start": None if ends.start is None else job.domain.text(ends.start),
        "stop": None if ends.stop is None else job.domain.text(ends.stop),
    }
    words["effect"]["path"] = effect.path
    if dead_letters is not None:
        words["dead_letters"]["path"] = dead_letters.path
    words["store"]["url"] = job.store.url
    return {"job": str(job.path), **words}


def _words(value: Any) -> Any:
    """A model as its keys and values; what was not given and has no default is left out."""
    if isinstance(value, BaseModel):
        fields = type(value).model_fields
        words = {}
        for name, field in fields.items():
            there = getattr(value, name)
            if there is not None:
                is_duration = _IS_DURATION in field.metadata
                words[field.alias or name] = duration_text(there) if is_duration else _words(there)
        return words | (value.model_extra or {})
    if isinstance(value, dict):
        return {key: _words(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_words(item) for item in value]
    return value


def duration_text(seconds: float) -> str:
    """A duration as a job file writes it.

    >>> duration_text(0.5), duration_text(10.0), duration_text(90.0), duration_text(900.0)
    ('500ms', '10s', '90s', '15m')
    """
    for unit, size in _UNITS:
        if seconds >= size and seconds % size == 0:
            return f"{int(seconds // size)}{unit}"
    return f"{seconds * 1000:g}ms"
