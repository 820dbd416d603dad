"""The `script` operation: the page loop over a source whose every answer is written down."""

from collections.abc import Mapping, Sequence
from typing import Any

from gapless.errors import TokenCycle
from gapless.paging.chain import PageChain
from gapless.paging.page import Partition
from gapless.progress import IntegerDomain
from gapless.testing.scripted import ScriptedPage, ScriptedSource

ENDS = (None, "", {})


def read_script(start: str, pages: Mapping[str, Sequence[Any]], *, live: bool) -> dict[str, Any]:
    """Fetches, distinct events, and how the reading stopped. The cases give no positions: all events are tied."""
    script = {
        token: ScriptedPage([(event, 0) for event in events], None if following in ENDS else following)
        for token, (events, following) in pages.items()
    }
    source = ScriptedSource({"p": script})
    partition = Partition("p", {})
    session = source.open()
    chain = PageChain(partition, IntegerDomain(), start)
    met: set[str] = set()
    status = ""
    while not status:
        asked = chain.next_token
        page = session.fetch(partition, asked)
        met.update(page.ids)
        try:
            checked = chain.accept(page)
        except TokenCycle:
            status = "TOKEN_CYCLE"
        else:
            if checked.done:
                status = "IDLE_KEEP_TOKEN" if live and chain.next_token == asked else "END"
    session.close()
    return {"fetches": len(source.fetches), "events": len(met), "status": status}
