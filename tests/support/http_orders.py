"""An HTTP source of orders, and its answers in few words."""

import copy
from typing import Any

from http_script import HttpScript, Reply, http_script

from gapless.paging.http import HttpSession, HttpSource
from gapless.paging.page import Page, Partition
from gapless.testing import ManualClock

EU = Partition("eu", {})
PAGES = {
    "path": "/partitions/{partition.id}/events",
    "records": "events",
    "next": {"type": "cursor", "from": "next", "param": "cursor", "end": "null"},
}
BASE: dict[str, Any] = {
    "scope": "orders",
    "domain": {"type": "integer"},
    "base_url": "http://127.0.0.1:1",
    "client": {"retry": {"attempts": 1}},
    "partitions": {"list": ["eu", "us"]},
    "pages": PAGES,
    "event": {"id": "id", "position": "at"},
    "certificate": {"none": {}},
}
CERTIFIED = {"page": {"position": "complete.at", "inclusive": "complete.inclusive"}}
CLOSED = {
    "certificate": {"assert": {"closed_range": True, "reason": "2013 is over"}},
    "range": {"start": 0, "stop": 10},
}


def source_of(**changes: Any) -> HttpSource:
    return HttpSource(**{**copy.deepcopy(BASE), **changes})


def pages(**changes: Any) -> dict[str, Any]:
    return {**PAGES, **changes}


def next_as(**changes: Any) -> dict[str, Any]:
    return pages(next={**PAGES["next"], **changes})  # type: ignore[dict-item]


def session_of(script: HttpScript, **changes: Any) -> HttpSession:
    return source_of(base_url=script.url, **changes).open(ManualClock())


def page_of(
    body: object, token: str | None = None, headers: dict[str, str] | None = None, **changes: Any
) -> Page:
    with http_script(Reply(body, headers=headers or {})) as script:
        session = session_of(script, **changes)
        try:
            return session.fetch(EU, token)
        finally:
            session.close()


def answer(*events: tuple[object, object], **more: object) -> dict[str, object]:
    return {"events": [{"id": event_id, "at": at} for event_id, at in events], "next": None, **more}


def asked_for(token: str | None, partition: Partition = EU, **changes: Any) -> str:
    with http_script(Reply(answer())) as script:
        session = session_of(script, **changes)
        session.fetch(partition, token)
        session.close()
    return script.asked[0].path
