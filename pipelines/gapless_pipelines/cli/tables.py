"""Tables for a terminal, drawn by rich. Imported only where there is one."""

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from gapless_pipelines.cli.printing import number, printable
from gapless_pipelines.cli.wording import bound_words, state_words

_STYLES = {"held": "yellow", "gap": "red", "ended": "green", "sealed": "green", "not_started": "dim"}


def print_partitions(partitions: Sequence[Mapping[str, Any]]) -> None:
    """The partitions of a status document, on standard error."""
    Console(stderr=True, highlight=False).print(partition_table(partitions))


def partition_table(partitions: Sequence[Mapping[str, Any]]) -> Table:
    """A row a partition. Ids are shown as they are: nothing in them is markup."""
    table = Table(box=None, pad_edge=True, header_style="bold")
    for heading in ("partition", "state", "complete"):
        table.add_column(heading)
    for heading in ("pages", "events"):
        table.add_column(heading, justify="right")
    for row in partitions:
        style = _STYLES.get(row["state"], "")
        table.add_row(
            Text(printable(row["partition"])),
            Text(state_words(row["state"]), style=style),
            Text(bound_words(row["bound"])),
            number(row["sequence"]),
            number(row["events"]),
        )
    return table
