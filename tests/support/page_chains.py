"""Chains and pages in few words, for tests of the judgement over them."""

from collections.abc import Sequence
from typing import Any

from gapless.paging.chain import CheckedPage, PageChain
from gapless.paging.page import Page, Partition
from gapless.progress import IntegerDomain
from gapless.testing import ScriptedPage

P0 = Partition("p0", {})
Events = Sequence[tuple[str, int]]


def chain_from(token: str | None = None, **more: Any) -> PageChain:
    return PageChain(P0, IntegerDomain(), token, **more)


def page(events: Events = (), next: str | None = None, token: str | None = None, **more: Any) -> Page:
    return ScriptedPage(events, next=next, **more).page(token)


def kinds(checked: CheckedPage) -> list[str]:
    return [violation.kind for violation in checked.violations]
