"""Statuses that the table itself excludes: its CHECK constraints on the status column are asked."""

import re

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from gapless.delivery.log_table import LogTable, literal, quoted
from gapless.errors import NotAMessageLog


def refuse_unknown_statuses(
    connection: Connection,
    log: LogTable,
    *,
    schema: str,
    table: str,
    status: str,
    status_ddl: str,
    others: tuple[str, ...],
    where: str,
) -> None:
    """Raises NotAMessageLog for a terminal status that a CHECK constraint lets no row have.

    `others`: the table's columns. A constraint that speaks of another one too says nothing about the status alone."""
    for constraint in sa.inspect(connection).get_check_constraints(table, schema=schema):
        rule = constraint["sqltext"]
        if not _names(rule, status) or any(
            _names(rule, other) for other in others if other.casefold() != status.casefold()
        ):
            continue
        for value in log.terminal:
            allowed = connection.exec_driver_sql(
                f"SELECT ({rule}) FROM (SELECT CAST({literal(value)} AS {status_ddl}) AS {quoted(status)}) AS status_alone",  # noqa: S608
                # Without parameters the driver leaves a `%` in the rule as it stands.
                execution_options={"no_parameters": True},
            ).scalar_one()
            if allowed is not None and not allowed:
                raise NotAMessageLog(
                    f"no row can have the terminal status {value!r}",
                    where=where,
                    remedy=f"the table allows: CHECK ({rule})",
                )


def _names(rule: str, column: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(column)}(?!\w)", rule, re.IGNORECASE) is not None
