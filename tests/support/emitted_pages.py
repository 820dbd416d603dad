"""Pages as a reader emits them, of any source: read by a chain of its own from any token, with attempts of their own names."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import apache_beam as beam

from gapless.emitted_page import EmittedPage
from gapless.outcomes import delivered
from gapless.paging.chain import CheckedPage, PageChain
from gapless.plan import partition_of
from gapless.progress import Bound
from gapless.updates import ReadTask


def emitted(
    source: Any,
    task: ReadTask,
    *,
    token: str | None = None,
    number: int = 0,
    reader: str = "reader",
    bound: Bound | None = None,
    read_to: Bound | None = None,
    most: int = 10_000,
) -> Iterator[EmittedPage]:
    """The pages from `token` on, as the reader of that name reads them."""
    session = source.open()
    chain = PageChain(
        partition_of(task), task.domain, token, bound, source.range, read_to=read_to, certifies=True
    )
    for read in range(most):
        checked = chain.accept(session.fetch(partition_of(task), chain.next_token))
        yield as_emitted(task, checked, f"{reader}-{task.partition}-{number + read}", number + read)
        if checked.done:
            return


def as_emitted(task: ReadTask, checked: CheckedPage, attempt: str, number: int) -> EmittedPage:
    page = checked.page
    return EmittedPage(
        task=task,
        attempt=attempt,
        number=number,
        start_token=page.start_token,
        next_token=page.next_token,
        ids=page.ids,
        positions=page.positions,
        rows=page.rows,
        certificate=page.certificate,
        violations=checked.violations,
    )


class Emit(beam.DoFn):
    """Reads each chain of a task to its end."""

    def __init__(self, source: Any) -> None:
        self._source = source

    def process(self, task: ReadTask) -> Iterator[EmittedPage]:
        yield from emitted(self._source, task)


class Deliver(beam.DoFn):
    """A user's step: says of each page that it is delivered, as one outcome, or as one an event."""

    def __init__(self, one_by_one: bool = False) -> None:
        self._one_by_one = one_by_one

    def process(self, page: EmittedPage) -> Iterator[Any]:
        if not self._one_by_one:
            yield delivered(page)
            return
        for event in page.events:
            yield delivered(page, [event.id])


def taken(store: Any, task: ReadTask) -> ReadTask:
    """The task, and its chain taken, as a reader does first."""
    store.take(task.chain, task.fencing_token)
    return replace(task)
