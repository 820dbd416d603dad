"""What `gapless delivery` prints: JSON documents of a message log, and the same as lines."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from gapless.clock import instant_text
from gapless.delivery import DeliveryBlocker, Held, MessageLog, OpenWriter, Violation, Work
from gapless.delivery.coverage import CoveredRange, Shard
from gapless.delivery.installing import NotInstalled
from gapless.delivery.worker import Report
from gapless.errors import ConfigurationError
from gapless_pipelines.cli.printing import number, plural, printable

FORMAT = 1


def check_document(log: MessageLog, *, audit: bool) -> dict[str, Any]:
    """What the declaration means, whether it is installed, and how each statement is answered."""
    found = log.found
    try:
        plans = [
            {
                "statement": plan.statement,
                "index": plan.index,
                "plan": plan.scan,
                "problem": plan.problem or None,
            }
            for plan in log.check()
        ]
        installed = True
    except NotInstalled:
        plans, installed = [], False
    new = log.audit(count=True) if audit and installed else []
    settled = log.settled()
    return {
        "format": FORMAT,
        "table": found.table,
        "schema": found.schema,
        "database": found.dialect,
        "columns": {"id": found.id, "shard": found.shard, "status": found.status},
        "terminal": list(found.log.terminal),
        "ids": found.log.ids,
        "installed": installed,
        "settled": settled.id,
        "open_writers": [_writer(writer) for writer in settled.blockers],
        "plans": plans,
        "violations": [violation_value(violation) for violation in new],
    }


def check_lines(document: Mapping[str, Any]) -> Iterator[str]:
    columns = document["columns"]
    yield (
        f"{printable(document['schema'])}.{printable(document['table'])} on {document['database']}: a safe set-up;"
        f" ids by {document['ids']}, settled through {number(document['settled'])}"
    )
    yield (
        f"  id {printable(columns['id'])}, shard {printable(columns['shard'])}, status {printable(columns['status'])};"
        f" terminal: {', '.join(printable(str(status)) for status in document['terminal'])}"
    )
    for writer in document["open_writers"]:
        yield f"  {_blocker_text(writer)}"
    if not document["installed"]:
        yield "  not installed yet: `gapless delivery install` creates its indexes and tables"
    for plan in document["plans"]:
        verdict = "its index" if plan["problem"] is None else f"PROBLEM: {printable(plan['problem'])}"
        yield f"  plan of {plan['statement']}: {verdict} ({printable(plan['plan'])})"
    for violation in document["violations"]:
        yield f"violation: {_violation_text(violation)}"


def status_document(log: MessageLog, shards: Sequence[Shard] | None) -> dict[str, Any]:
    """Every shard, or those asked about."""
    return {
        "format": FORMAT,
        "table": log.found.table,
        "shards": [
            {
                "shard": standing.frontier.shard,
                "coverage": standing.frontier.coverage,
                "frontier": standing.frontier.through,
                "newly_covered": standing.newly_covered,
                "claimed": standing.claimed,
                "blocker": _blocker(standing.frontier.blocker),
            }
            for standing in log.standings(shards)
        ],
        "violations": [
            violation_value(violation)
            for violation in log.violations()
            if shards is None or violation.shard in shards
        ],
    }


def status_lines(document: Mapping[str, Any], most: int) -> Iterator[str]:
    """The shards that move or are held, the furthest behind first; of those with nothing to say, only how many."""
    shards = document["shards"]
    telling = [row for row in shards if row["newly_covered"] or row["blocker"] or row["claimed"] is not None]
    telling.sort(key=lambda row: -row["newly_covered"])
    yield f"{printable(document['table'])}: {plural(len(shards), 'shard')}, {number(len(shards) - len(telling))} with nothing new"
    for row in telling[:most]:
        line = (
            f"  {printable(str(row['shard']))}: frontier {number(row['frontier'])}, covered through"
            f" {number(row['coverage'])}, {plural(row['newly_covered'], 'row')} newly covered"
        )
        if row["claimed"] is not None:
            line += f", claimed through {number(row['claimed'])}"
        yield line + (f"; {_blocker_text(row['blocker'])}" if row["blocker"] else "")
    if len(telling) > most:
        yield f"  and {number(len(telling) - most)} more: --json shows all, --shard one"
    for violation in document["violations"][:most]:
        yield f"violation: {_violation_text(violation)}"
    if len(document["violations"]) > most:
        yield f"  and {number(len(document['violations']) - most)} more violations: --json shows all"


def work_document(done: Work) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "ranges": done.ranges,
        "rows": done.rows,
        "lost": done.lost,
        "violations": done.violations,
        "held": [
            {
                "shard": held.due.shard,
                "after": held.due.after,
                "through": held.due.through,
                "error": held.error,
            }
            for held in done.held.values()
        ],
    }


def told_line(told: Report) -> str:
    """One line of a worker that works."""
    if isinstance(told, CoveredRange):
        return f"{printable(str(told.shard))}: ({told.after}, {told.through}], {plural(told.rows, 'row')}"
    if isinstance(told, Held):
        due = told.due
        return (
            f"held: {printable(str(due.shard))}: ({due.after}, {due.through}]: {printable(told.error)};"
            f" again in {told.wait:.0f} s"
        )
    return f"violation: {_violation_text(violation_value(told))}"


def violation_value(violation: Violation) -> dict[str, Any]:
    return {
        "shard": violation.shard,
        "code": violation.code,
        "id": violation.id,
        "after": violation.after,
        "through": violation.through,
        "detail": violation.detail,
        "found_at": violation.found_at,
    }


def shard_argument(log: MessageLog, given: str) -> Shard:
    """A shard as it is typed. Raises ConfigurationError."""
    if log.found.shard_kind != "integer":
        return given
    try:
        return int(given)
    except ValueError:
        raise ConfigurationError(
            f"{given!r} is no shard of this log: they are integers", where="--shard", remedy="give an integer"
        ) from None


def _blocker(blocker: DeliveryBlocker | None) -> dict[str, Any] | None:
    if blocker is None:
        return None
    if blocker.code == "non_terminal":
        return {"code": blocker.code, "id": blocker.id, "status": blocker.status}
    return _writer(blocker)


def _writer(writer: OpenWriter | DeliveryBlocker) -> dict[str, Any]:
    since = None if writer.since is None else instant_text(writer.since)
    if writer.code == "prepared_transaction":
        return {"code": writer.code, "gid": writer.gid, "user": writer.user, "since": since}
    return {
        "code": writer.code,
        "pid": writer.pid,
        "user": writer.user,
        "application": writer.application,
        "since": since,
    }


def _blocker_text(blocker: Mapping[str, Any]) -> str:
    if blocker["code"] == "non_terminal":
        return f"held by row {blocker['id']}, status {printable(repr(blocker['status']))}"
    since = f", open since {blocker['since']}" if blocker["since"] else ""
    if blocker["code"] == "prepared_transaction":
        return f"held by the prepared transaction {printable(repr(blocker['gid']))}{since}"
    who = ", ".join(
        f"{name} {printable(str(blocker[key]))}"
        for name, key in (("pid", "pid"), ("user", "user"), ("application", "application"))
        if blocker[key] is not None
    )
    return f"held by an open writer: {who}{since}"


def _violation_text(violation: Mapping[str, Any]) -> str:
    where = (
        f"id {violation['id']}"
        if violation["id"] is not None
        else f"({violation['after']}, {violation['through']}]"
    )
    return f"{printable(str(violation['shard']))}, {where}: {violation['code']}: {printable(violation['detail'])}"
