"""The handoff certificate: what a source states about the events that are in transit between two routing generations."""

from gapless.errors import HandoffUnproven
from gapless.paging.http_config import HandoffConfig
from gapless.paging.http_pages import BoundReader, PageReader, generation_at
from gapless.paging.http_values import HANDOFF_PLACES
from gapless.paging.json_path import JsonPath
from gapless.paging.page import Page
from gapless.paging.template import Template, TemplateValueError
from gapless.progress import Certificate, Domain

ISSUER = "handoff"


class HandoffReader:
    """Reads one source's handoff certificates. Stateless after construction."""

    def __init__(self, config: HandoffConfig, pages: PageReader, domain: Domain) -> None:
        self._path = Template.parse(config.path, HANDOFF_PLACES)
        self._from = JsonPath.parse(config.from_)
        self._to = JsonPath.parse(config.to)
        self._complete = BoundReader(config.complete, domain)
        self._in_transit = JsonPath.parse(config.in_transit)
        self._pages = pages

    def path(self, before: str, after: str, where: str) -> str:
        """Where the certificate between the two generations is asked for. Raises HandoffUnproven."""
        try:
            return self._path.path({"from": before, "to": after})
        except TemplateValueError as error:
            raise HandoffUnproven(
                str(error), where=where, remedy="name the generations so that a path can hold them"
            ) from None

    def read(self, value: object, start_token: str | None, before: str, after: str, where: str) -> Page:
        """The one page of events in transit, in order. Raises HandoffUnproven where the certificate is of other generations, or
        states no bound (yet), and InvalidPage."""
        named = generation_at(self._from, value, where), generation_at(self._to, value, where)
        if named != (before, after):
            raise HandoffUnproven(
                f"the handoff certificate is from {named[0]!r} to {named[1]!r}, asked for was from {before!r} to {after!r}",
                where=where,
                remedy="have the source answer for the generations in the path",
            )
        complete = self._complete.bound(value, where)
        if complete is None:
            raise HandoffUnproven(
                f"the source has no handoff certificate from {before!r} to {after!r} yet",
                where=where,
                remedy="it is asked for again at the next run",
            )
        ids, positions, rows = self._pages.events(
            self._in_transit, "membership.handoff.in_transit", value, where
        )
        # What lies above the certificate is not in transit: its new partition gives it.
        covered = [index for index, position in enumerate(positions) if complete.covers(position)]
        order = sorted(covered, key=lambda index: positions[index])
        return Page(
            start_token=start_token,
            next_token=None,
            end=True,
            ids=[ids[index] for index in order],
            positions=[positions[index] for index in order],
            rows=[rows[index] for index in order],
            certificate=Certificate(complete, ISSUER),
        )
