"""Whatever the store's own operations leave behind, an audit finds nothing in it."""

from audited_scope import AuditedScope

from gapless.progress import Bound


def assert_clean(scope: AuditedScope) -> None:
    report = scope.audit()
    assert report.clean, report.contradictions


def test_an_eventful_history_is_clean_and_everything_was_looked_at(history: AuditedScope) -> None:
    report = history.audit()
    assert report.clean, report.contradictions
    checked = report.checked
    assert (checked.chains, checked.promotions, checked.files) == (3, 12, 12)
    assert (checked.epochs, checked.publishes, checked.lists) == (4, 4, 4)
    assert checked.dead_letters == 2
    assert checked.bytes > 0
    assert (report.lineage, report.epoch, report.frontier) == (1, 4, Bound.through(45))


def test_a_scope_that_nothing_was_read_of_is_clean(orders: AuditedScope) -> None:
    assert_clean(orders)
    orders.observe()
    assert_clean(orders)
    orders.observe("a")
    assert_clean(orders)


def test_an_audit_changes_nothing(history: AuditedScope) -> None:
    before = history.contents()
    history.audit()
    assert history.contents() == before
