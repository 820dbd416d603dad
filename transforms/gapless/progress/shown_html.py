"""Values as a fragment of HTML for a notebook: text escaped, tables, nothing that runs or is fetched. Pure."""

from collections.abc import Iterable, Sequence
from html import escape

_CELL = "text-align:left;vertical-align:top;padding:0.15em 0.9em 0.15em 0"
_MUTED = "opacity:0.7"


def shown(value: object) -> str:
    """Text as it may stand between tags and in attributes; None is a dash. What does not print, such as a control character or
    one that turns the reading direction, is written out.

    >>> shown("<b>"), shown(None), shown("a\\u202eb"), shown(7)
    ('&lt;b&gt;', '–', 'a\\\\u202eb', '7')
    """
    if value is None:
        return "–"
    text = "".join(one if one.isprintable() else _written_out(one) for one in str(value))
    return escape(text, quote=True)


def _written_out(one: str) -> str:
    return one.encode("unicode_escape").decode("ascii")


def table(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table; every cell is escaped.

    >>> table(["id"], [["<x>"]]).count("&lt;x&gt;")
    1
    """
    head = "".join(f'<th style="{_CELL}">{shown(one)}</th>' for one in heads)
    body = "".join(
        "<tr>" + "".join(f'<td style="{_CELL}">{shown(cell)}</td>' for cell in row) + "</tr>" for row in rows
    )
    return (
        f'<table style="border-collapse:collapse"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'
    )


def line(text: str, *, muted: bool = False, strong: str = "") -> str:
    """One line: `strong` and then `text`, both escaped.

    >>> line("b", strong="a")
    '<div><strong>a</strong> b</div>'
    """
    style = f' style="{_MUTED}"' if muted else ""
    lead = f"<strong>{shown(strong)}</strong> " if strong else ""
    return f"<div{style}>{lead}{shown(text)}</div>"


def fragment(*parts: str) -> str:
    """The parts, which are HTML already, as one."""
    return f'<div style="font-family:inherit;line-height:1.5">{"".join(parts)}</div>'
