"""Auditing a scope: everything it claims derived anew from the store's own evidence, and every promoted file read.

auditing         `audit`: the whole of it, in one snapshot, reading only
contradiction    what is found, by a closed list of codes
chains           one chain from its promotion records
lists, publishes, epochs, members, scope_row      what led to the frontier, each from what came before it
routing, named   under which generation each page was read; which list named each chain last
clocks           the order in which things can have happened
outcomes         dead letters and the receipts of open pages
files            promoted files as they lie there now
"""

from gapless.audit.auditing import AuditReport, audit
from gapless.audit.contradiction import CODES, Checked, Contradiction

__all__ = ["CODES", "AuditReport", "Checked", "Contradiction", "audit"]
