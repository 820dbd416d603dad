"""A scripted source of many partitions and the events it promises, for pipelines: importable, so that every worker finds it."""

from collections.abc import Mapping, Sequence
from typing import Any

from gapless.progress import Bound
from gapless.testing import ScriptedPage, ScriptedSource

SCOPE = "scripted"


def universe(partitions: int = 10, pages: int = 6, events: int = 5) -> dict[str, list[dict[str, Any]]]:
    """Partition -> its events in order, `events` a page."""
    return {
        f"p{n}": [{"id": f"p{n}-{k}", "position": 10 * k + n, "text": f"ü{k}"} for k in range(pages * events)]
        for n in range(partitions)
    }


def end_of(there: Mapping[str, Sequence[Mapping[str, Any]]]) -> Bound:
    """What the source certifies with each partition's last page."""
    return Bound.through(10 * max(len(events) for events in there.values()))


def source_of(
    there: Mapping[str, Sequence[Mapping[str, Any]]],
    events: int = 5,
    *,
    kind: type[ScriptedSource] = ScriptedSource,
    **options: Any,
) -> ScriptedSource:
    """A source of these events, `events` a page, each page certified."""
    script: dict[str, dict[str | None, Any]] = {}
    for name, all_of_it in there.items():
        script[name] = {}
        for start in range(0, len(all_of_it), events):
            page = all_of_it[start : start + events]
            last = start + events >= len(all_of_it)
            script[name][None if start == 0 else f"t{start}"] = ScriptedPage(
                [(event["id"], event["position"], event) for event in page],
                None if last else f"t{start + events}",
                end_of(there) if last else Bound.through(page[-1]["position"]),
            )
    return kind(script, scope=SCOPE, **options)
