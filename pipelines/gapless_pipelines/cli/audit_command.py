"""`gapless audit`: derive everything that is claimed from the evidence for it, and read every promoted file."""

from typing import TYPE_CHECKING, Any

from gapless_pipelines.cli.arguments import AsJson, Debug, JobFile, ScopeName, StoreUrl
from gapless_pipelines.cli.failures import VIOLATED
from gapless_pipelines.cli.meaning import meant, only_scope
from gapless_pipelines.cli.printing import emit, plural, printable, say

if TYPE_CHECKING:
    from gapless.audit import AuditReport, Contradiction


def audit(
    job: JobFile = None,
    store: StoreUrl = None,
    scope: ScopeName = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> int:
    """Re-derive bounds, epochs and frontier from stored evidence, and read every promoted file. Ends with 5 where something
    contradicts; changes nothing."""
    from gapless.audit import audit as audited
    from gapless.reading import Progress

    what = meant(job, store, scope)
    # Not by way of the scope's reader: it refuses a row of which a bound cannot be read, which is to be told here.
    with Progress(what.store) as progress:
        name = what.scope or only_scope(progress.scopes(), what.store.url)
        report = audited(progress.store, name, found=None if as_json else lambda one: say(_line(one)))
    if as_json:
        emit(document_of(report))
    else:
        say(*_summary(report))
    return 0 if report.clean else VIOLATED


def document_of(report: "AuditReport") -> dict[str, Any]:
    """What `--json` prints, format 1."""
    from dataclasses import asdict

    from gapless.status_document import FORMAT, bound_value, instant

    return {
        "format": FORMAT,
        "scope": report.scope,
        "as_of": instant(report.as_of),
        "lineage": report.lineage,
        "membership_epoch": report.epoch,
        "frontier": bound_value(report.frontier, report.domain),
        "clean": report.clean,
        "checked": asdict(report.checked),
        "contradictions": [_value(one) for one in report.contradictions],
    }


def _value(one: "Contradiction") -> dict[str, Any]:
    return {
        "code": one.code,
        "lineage": one.lineage,
        "membership_epoch": one.epoch,
        "partition": one.partition,
        "chain": one.chain,
        "sequence": one.sequence,
        "path": one.path,
        "detail": one.detail,
    }


def _line(one: "Contradiction") -> str:
    places = (
        (one.path, "{}"),
        (one.partition, "partition {}"),
        (one.sequence, "page {}"),
        (one.epoch, "membership epoch {}"),
        (None if one.partition is None else one.chain, "chain {}"),
        (one.lineage, "lineage {}"),
    )
    where = ", ".join(shape.format(printable(str(value))) for value, shape in places if value is not None)
    return f"{one.code}: {where or 'the store'}: {printable(one.detail)}"


def _summary(report: "AuditReport") -> tuple[str, str]:
    checked = report.checked
    evidence = (
        f"{plural(checked.chains, 'chain')}, {plural(checked.promotions, 'promotion record')},"
        f" {plural(checked.epochs, 'membership epoch')}, {plural(checked.publishes, 'frontier move')},"
        f" {plural(checked.lists, 'list')}, {plural(checked.dead_letters, 'dead letter')},"
        f" {plural(checked.receipts, 'receipt')}"
    )
    found = "no contradiction" if report.clean else plural(len(report.contradictions), "contradiction")
    return (
        f"{printable(report.scope)}: {found}",
        f"  looked at {evidence}, {plural(checked.files, 'file')} of {plural(checked.bytes, 'byte')}",
    )
