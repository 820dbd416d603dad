"""What `gapless check` finds out: it asks the source for its partitions and two pages, and the store for its scope.

Nothing is written: the store is opened for reading, and pages go no further than this process.
"""

from collections.abc import Iterator
from itertools import chain
from typing import TYPE_CHECKING, Any

from gapless.effects import FrozenSchema, infer_schema
from gapless.errors import ConfigurationError, StoreAbsent, UnknownScope
from gapless.paging.chain import CheckedPage, PageChain
from gapless.paging.page_token import token_digest
from gapless.plan import require_partitions, scope_identity
from gapless.progress import Assertion, Domain
from gapless.status_document import FORMAT, bound_value
from gapless_pipelines.job.description import describe

if TYPE_CHECKING:
    from gapless.paging.source import Assignment, Session
    from gapless_pipelines.job import Job

PAGES = 2
NAMES_SHOWN = 5


def understood(job: "Job", *, offline: bool = False) -> dict[str, Any]:
    """What the job file means, and unless `offline` what source and store say to it, as JSON values.

    Raises SourceError for what the source answers, StoreError where there is a store that cannot be used."""
    words = describe(job)
    document: dict[str, Any] = {
        "format": FORMAT,
        "job": str(job.path),
        "scope": job.scope,
        "domain": job.domain.describe(),
        "settings": words,
        "stream": _stream(job),
    }
    if offline:
        return document
    document["store"], frozen = _store(job)
    session = job.source().open()
    try:
        document |= _source(job, session, frozen)
    finally:
        session.close()
    return document


def _stream(job: "Job") -> dict[str, Any]:
    """How a stream would go on at the end of what there is, or why it would be refused."""
    source = job.source()
    found: dict[str, Any] = {"tail": source.config.pages.tail, "refused": None, "remedy": None}
    try:
        source.following()
    except ConfigurationError as error:
        found |= {"refused": error.what, "remedy": error.remedy}
    return found


def _store(job: "Job") -> tuple[dict[str, Any], FrozenSchema | None]:
    """Whether the store and the scope are there, where the scope differs, and the schema its files are frozen to."""
    found: dict[str, Any] = {
        "url": job.store.url,
        "state": "new",
        "differences": [],
        # On SQLite a connection is a file handle, and nobody counts them.
        "connections_per_process": None if job.store.url.startswith("sqlite") else job.store.connections,
    }
    try:
        opened = job.store.ref().open(readonly=True)
    except StoreAbsent:
        return found, None
    with opened as store:
        try:
            store.scope(job.scope)
        except UnknownScope:
            return found | {"state": "new scope"}, None
        differences = store.identity_differences(scope_identity(job.source()))
        found |= {
            "state": "existing",
            "differences": [
                {"key": one.key, "stored": one.stored, "given": one.given} for one in differences
            ],
        }
        text = store.schema_store(job.scope).frozen()
    return found, None if text is None else FrozenSchema.from_text(text)


def _source(job: "Job", session: "Session", frozen: FrozenSchema | None) -> dict[str, Any]:
    source = job.source()
    assignment = session.assignment()
    require_partitions(assignment)
    pages = list(_walk(job, session, assignment))
    checked = [page for page, _ in pages]
    rows = list(chain.from_iterable(page.page.rows for page in checked))
    schema = frozen or infer_schema(rows, job.effect().schema)
    return {
        "partitions": _partitions(assignment, job.domain),
        "pages": [value for _, value in pages],
        "certificate": {
            "basis": source.basis(),
            "on_pages": sum(page.page.certificate is not None for page in checked),
            "reason": _reason(checked),
        },
        "columns": {"frozen": frozen is not None, "types": dict(schema.types)},
        "parallelism": {
            "partitions": len(assignment.partitions),
            "at_once": min(len(assignment.partitions), job.config.source.client.connections),
        },
        "violations": [fault.detail for page in checked for fault in page.violations],
    }


def _walk(
    job: "Job", session: "Session", assignment: "Assignment"
) -> Iterator[tuple[CheckedPage, dict[str, Any]]]:
    """The first pages of the first partition, judged as a run would judge them."""
    source, partition = job.source(), assignment.partitions[0].partition
    pages = PageChain(
        partition,
        job.domain,
        start_token=None,
        range=source.range,
        generation=assignment.generation or None,
        certifies=source.basis() == "certified",
    )
    for _ in range(PAGES):
        checked = pages.accept(session.fetch(partition, pages.next_token))
        yield checked, _page_value(partition.id, checked, job.domain)
        if checked.done:
            return


def _page_value(partition: str, checked: CheckedPage, domain: Domain) -> dict[str, Any]:
    page = checked.page
    certificate = page.certificate
    return {
        "partition": partition,
        "events": len(page),
        "first_id": page.ids[0] if page.ids else None,
        "first_position": domain.text(page.positions[0]) if page.positions else None,
        "last_position": domain.text(page.positions[-1]) if page.positions else None,
        # A token may carry credentials: it is shown as a digest.
        "next_token": None if page.next_token is None else token_digest(page.next_token),
        "ends": None if checked.ends is None else checked.ends.reason,
        "certificate": None if certificate is None else bound_value(certificate.bound, domain),
    }


def _partitions(assignment: "Assignment", domain: Domain) -> dict[str, Any]:
    names = [listed.partition.id for listed in assignment.partitions]
    return {
        "count": len(names),
        "first": names[:NAMES_SHOWN],
        "routing_generation": assignment.generation,
        "list": "frozen" if assignment.list_bound is None else "certified",
        "list_bound": bound_value(assignment.list_bound, domain),
    }


def _reason(checked: list[CheckedPage]) -> str | None:
    """Why a bound is assumed, in the operator's words."""
    return next(
        (c.page.certificate.reason for c in checked if isinstance(c.page.certificate, Assertion)), None
    )
