"""Ways to break the product, one promise each: an oracle that does not see them is none."""

from dataclasses import replace
from typing import Any

import sqlalchemy as sa


def publish_the_highest_bound() -> None:
    """The frontier is the maximum of the members' bounds."""
    from gapless.progress import NO_CAP
    from gapless.store import publish, schema

    highest = sa.select(sa.func.max(schema.chain.c.bound)).scalar_subquery()
    publish.PUBLISH = (  # type: ignore[misc]
        sa.update(schema.scope)
        .where(schema.scope.c.cap == NO_CAP, schema.scope.c.frontier < highest)
        .values(frontier=highest)
        .returning(schema.scope)
    )


def lose_the_last_event_of_every_page() -> None:
    from gapless.effects.run_writer import ParquetRunWriter

    add = ParquetRunWriter.add

    def add_without_the_last(self: Any, page: Any, sequence: int, skip: Any = frozenset()) -> Any:
        cut = replace(page, ids=page.ids[:-1], positions=page.positions[:-1], rows=page.rows[:-1])
        return add(self, cut, sequence, skip) if cut.ids else ()

    ParquetRunWriter.add = add_without_the_last  # type: ignore[method-assign]


def certify_what_is_still_to_come() -> None:
    """A page's certificate counts a little further than the source said: at the end of the run nobody could tell."""
    from gapless.progress import Bound
    from gapless.settling.open_run import OpenRun

    promotion = OpenRun.promotion

    def promotion_ahead_of_itself(self: Any) -> Any:
        made = promotion(self)
        return replace(made, bound=None if made.bound is None else Bound(made.bound.position + 20, True))

    OpenRun.promotion = promotion_ahead_of_itself  # type: ignore[method-assign]


def list_files_before_they_are_durable() -> None:
    """What is listed is promoted before the file has its name: between the two it is not there."""
    from gapless.settling.open_run import OpenRun

    promotion = OpenRun.promotion

    def promotion_of_another_file(self: Any) -> Any:
        made = promotion(self)
        return replace(made, path=None if made.path is None else made.path + ".soon")

    OpenRun.promotion = promotion_of_another_file  # type: ignore[method-assign]
