"""Every error gapless raises on purpose, as one tree: whose fault it is, whether a retry can help, and a stable code.

    GaplessError
    ├── ConfigurationError      the user's words: job file, command line, domain    exit 2, nothing was written
    ├── PositionError           a value that is no position of its domain           also a ValueError; exit 2
    ├── NotComparable           positions or bounds that share no order             also a TypeError
    ├── StoreError              the store cannot be used; what is promoted stays    exit 2
    │   ├── StoreUnreadable     not reachable, not ours, or damaged
    │   │   └── StoreAbsent     there is none yet: the first run creates it
    │   ├── StoreUnwritable     disk full, read-only, or no permission
    │   ├── StoreBusy           locked by another process for too long; a retry may help
    │   ├── StoreNewer          written by a newer gapless
    │   ├── ForeignScope        holds another scope under this name
    │   ├── ForeignLineage      evidence of another lineage
    │   ├── UnknownScope        nothing under that name
    │   └── MembershipRefused   an operator's word that cannot be meant so
    ├── SourceError             what the source answered; becomes its partition's blocker
    │   ├── SourceUnavailable   transient: the retries are used up
    │   ├── InvalidPage         the answer is not what the job file says (missing path, type, order, ...)
    │   ├── TokenExpired        the page token is dead at the source
    │   ├── RangeTrimmed        the source can no longer serve what follows the token
    │   ├── TokenCycle          tokens repeat and nothing new arrives
    │   ├── RoutingChanged      answered under another routing generation
    │   └── HandoffUnproven     no handoff certificate between the two routing generations
    ├── EffectError             an event or page could not be applied
    │   └── SchemaDrift         an event does not fit the frozen schema and `on_drift: hold` is set
    ├── MessageLogError         the table cannot be followed as a message log       exit 2
    │   ├── NotAMessageLog      not what was declared: a name, a type, a view, no sequence, no privilege
    │   ├── UnsafeSetup         no safe answer exists on it: `setup` says by name which set-up it is
    │   ├── DatabaseUnavailable not reachable, busy or full; a retry may help
    │   └── InsideTransaction   the connection is inside a transaction, which sees its own snapshot
    ├── CoverageMoved           another worker has covered or claimed the range     exit 4
    ├── NotReached              what was asked for is not complete (yet)            exit 3
    └── Fenced                  a newer run has taken the partition                 exit 4

An error says three things, each one line: what happened, where, and what to do.
"""


class GaplessError(Exception):
    """Base of all. `what`, `where` and `remedy` are one line each; `code` is stable."""

    code = "error"
    exit_status = 1

    def __init__(self, what: str, *, where: str = "", remedy: str = "") -> None:
        super().__init__(what, where, remedy)
        self.what = what
        self.where = where
        self.remedy = remedy

    def __str__(self) -> str:
        return "\n".join(line for line in (self.what, self.where, self.remedy) if line)

    def __reduce__(self) -> tuple[object, ...]:
        return (_rebuild, (type(self), self.what, self.where, self.remedy, dict(self.__dict__)))


def _rebuild(
    kind: type[GaplessError], what: str, where: str, remedy: str, state: dict[str, object]
) -> GaplessError:
    error = kind.__new__(kind)
    Exception.__init__(error, what, where, remedy)
    error.__dict__.update(state)
    return error


class ConfigurationError(GaplessError):
    """What the user wrote cannot be meant so. Nothing was written."""

    code = "configuration"
    exit_status = 2


class PositionError(GaplessError, ValueError):
    """The value is no position of its domain: another type, a float, a naive time, more digits than it holds."""

    code = "position"
    exit_status = 2


class NotComparable(GaplessError, TypeError):
    """The two share no order: text against integers, lists of other shapes, a conversion the domain does not have."""

    code = "not_comparable"


class StoreError(GaplessError):
    """The store refuses; nothing in it was changed."""

    code = "store"
    exit_status = 2


class StoreUnreadable(StoreError):
    """Not reachable, not a gapless store, or damaged."""

    code = "store_unreadable"


class StoreAbsent(StoreUnreadable):
    """Nothing is there yet; the first run creates it."""

    code = "store_absent"


class StoreUnwritable(StoreError):
    """It can be read but not written: the disk is full, the file or server read-only, or the role lacks a permission."""

    code = "store_unwritable"


class StoreBusy(StoreError):
    """Another process held the lock for longer than the time-out. Nothing was changed; trying again is safe."""

    code = "store_busy"


class StoreNewer(StoreError):
    """Written by a newer version of gapless than this one."""

    code = "store_newer"


class ForeignScope(StoreError):
    """The store holds another scope under this name: evidence of two scopes is never combined."""

    code = "foreign_scope"


class ForeignLineage(StoreError):
    """The evidence belongs to another lineage of this scope."""

    code = "foreign_lineage"


class UnknownScope(StoreError):
    """The store holds no scope of that name."""

    code = "unknown_scope"


class MembershipRefused(StoreError):
    """An operator's seal or rebuild that cannot be meant so: no reason, no such partition, behind what is proved."""

    code = "membership_refused"


class SourceError(GaplessError):
    """What the source answered. `code` is the blocker's code; a retry within the run helps only for the transient kind."""

    code = "source_unavailable"
    exit_status = 3


class SourceUnavailable(SourceError):
    """Transient: no usable answer within the retries. `retry_after` is in seconds, where the source said so."""

    def __init__(
        self, what: str, *, where: str = "", remedy: str = "", retry_after: float | None = None
    ) -> None:
        super().__init__(what, where=where, remedy=remedy)
        self.retry_after = retry_after


class InvalidPage(SourceError):
    """The answer contradicts what was declared: an absent path, another type, out of order, a null id. Asking again is no use."""


class TokenExpired(SourceError):
    """The page token is no longer valid at the source."""

    code = "token_expired"


class RangeTrimmed(SourceError):
    """The source can no longer serve what follows the token: there is a hole."""

    code = "range_trimmed"


class TokenCycle(SourceError):
    """A page token was met again with nothing new since: the chain would never end."""

    code = "token_cycle"


class RoutingChanged(SourceError):
    """The page was answered under another routing generation than the chain's."""

    code = "membership_changed"


class HandoffUnproven(SourceError):
    """The source certifies nothing about what moved between the two routing generations, or about two others."""

    code = "handoff_unproven"


class EffectError(GaplessError):
    """An event, or the page as a whole where `event_id` is None, could not be applied."""

    code = "unsettled_event"
    exit_status = 3

    def __init__(
        self,
        what: str,
        *,
        where: str = "",
        remedy: str = "",
        event_id: str | None = None,
    ) -> None:
        super().__init__(what, where=where, remedy=remedy)
        self.event_id = event_id


class SchemaDrift(EffectError):
    """An event does not fit the frozen schema, and the job says to hold."""

    code = "schema_drift"


class MessageLogError(GaplessError):
    """The table cannot be followed as a message log. Nothing was created or changed."""

    code = "message_log"
    exit_status = 2


class NotAMessageLog(MessageLogError):
    """The table is not what was declared: another name or type, a view, no sequence of its own, or no privilege to read it."""

    code = "not_a_message_log"


class UnsafeSetup(MessageLogError):
    """No safe answer exists on the table as it is set up. `setup` is the stable name of what is unsafe."""

    code = "unsafe_setup"

    def __init__(self, what: str, *, where: str = "", remedy: str = "", setup: str = "") -> None:
        super().__init__(what, where=where, remedy=remedy)
        self.setup = setup


class DatabaseUnavailable(MessageLogError):
    """The log's database cannot be reached, is busy or full. What is claimed or covered stays; trying again is safe."""

    code = "database_unavailable"


class InsideTransaction(MessageLogError):
    """The connection is inside a transaction: what it sees may be older than what others have committed, or its own alone."""

    code = "inside_transaction"


class CoverageMoved(GaplessError):
    """The shard's coverage or claim is another than the one meant: another worker was first. Nothing was changed."""

    code = "coverage_moved"
    exit_status = 4


class NotReached(GaplessError):
    """The frontier does not cover what was asked for, so that no complete answer exists."""

    code = "not_reached"
    exit_status = 3


class Fenced(GaplessError):
    """A newer run has taken the partition; this one changes nothing any more."""

    code = "fenced"
    exit_status = 4
