"""The page token of an HTTP chain: opaque JSON text around a cursor, or around the position a restart asks
from.

    {"cursor": <any JSON value>}                      go on where the source said
    {"since": "<position>"}                           restart at a certified bound, after a token has expired
    {"cursor": <value>, "since": "<position>"}        gone on from such a restart
    {..., "after": ["<position>", true]}              ask a chain's last page again, or what follows a bound: what
                                                      this bound covers was applied before, and is left out
    {..., "beyond": ["<id>", ...]}                    events above that bound which were applied before, too
    {..., "late": 1}                                  so many events behind the bound have come, and were applied
    {"after": null}                                   the chain's start, where a token has to say so

`since` stays in the tokens of a chain that was once restarted: what lies at or below it may come again, but
for what `after` covers. A token is shown to nobody; messages carry its digest."""

import hashlib
from dataclasses import dataclass
from typing import Any

import msgspec

_SHOWN = 10


class _Nothing:
    """The type of NO_CURSOR: a cursor may be any JSON value, so that no JSON value can say that there is
    none."""

    def __repr__(self) -> str:
        return "NO_CURSOR"


NO_CURSOR = _Nothing()


class _LeftOut(msgspec.Struct, frozen=True):
    after: tuple[str, bool] | None = None
    beyond: tuple[str, ...] = ()
    late: int = 0


@dataclass(frozen=True, slots=True)
class PageToken:
    """`cursor` is the JSON value the source gave, exactly; `since` the canonical text of a position; `after` a
    bound, as that text and whether it is inclusive."""

    cursor: object = NO_CURSOR
    since: str | None = None
    after: tuple[str, bool] | None = None
    beyond: tuple[str, ...] = ()
    late: int = 0

    @classmethod
    def decode(cls, text: str) -> "PageToken":
        """Raises ValueError for what `encode` has not written."""
        try:
            fields = msgspec.json.decode(text)
        except msgspec.DecodeError:
            fields = None
        known = {"cursor", "since", "after", "beyond", "late"}
        if not isinstance(fields, dict) or not fields or not fields.keys() <= known:
            raise ValueError(f"the page token {token_digest(text)} is none that an HTTP source has written")
        since = fields.get("since")
        if since is not None and not isinstance(since, str):
            raise ValueError(f"the page token {token_digest(text)} restarts from no text")
        try:
            left_out = msgspec.convert(fields, _LeftOut)
        except msgspec.ValidationError:
            raise ValueError(
                f"the page token {token_digest(text)} leaves out no bound and no events"
            ) from None
        return cls(fields.get("cursor", NO_CURSOR), since, left_out.after, left_out.beyond, left_out.late)

    def encode(self) -> str:
        fields: dict[str, Any] = {"after": None} if self == PageToken() else {}
        if self.cursor is not NO_CURSOR:
            fields["cursor"] = self.cursor
        if self.since is not None:
            fields["since"] = self.since
        if self.after is not None:
            fields["after"] = list(self.after)
        if self.beyond:
            fields["beyond"] = list(self.beyond)
        if self.late:
            fields["late"] = self.late
        return msgspec.json.encode(fields).decode()


def cursor_text(cursor: object) -> str:
    """A cursor as the value of a request parameter: text as it is, everything else as JSON."""
    return cursor if isinstance(cursor, str) else msgspec.json.encode(cursor).decode()


def token_digest(token: str | None) -> str:
    """What stands for a token in messages: the start of its SHA-256; tokens may carry credentials.

    >>> token_digest(None), token_digest('{"cursor":"a"}')
    ('start', '2aa9b53604')
    """
    return "start" if token is None else hashlib.sha256(token.encode()).hexdigest()[:_SHOWN]
