"""Every Beam metric of gapless, once."""

from apache_beam.metrics.metric import Metrics

NAMESPACE = "gapless"

LATE_PROGRESS = Metrics.counter(NAMESPACE, "late_progress")
"""Elements that told of a partition what was known already, or less."""

REPEATED = Metrics.counter(NAMESPACE, "repeated")
"""Pages and outcomes that had come before, and outcomes that said nothing."""

LATE_OUTCOMES = Metrics.counter(NAMESPACE, "late_outcomes")
"""Outcomes of pages that were promoted, or were not going to be."""

LATE_PAGES = Metrics.counter(NAMESPACE, "late_pages")
"""Pages that were promoted already, or that another attempt had passed, or whose chain was closed."""

FENCED_PAGES = Metrics.counter(NAMESPACE, "fenced_pages")
"""Pages read by a run that was not the chain's any more."""

STALE_GENERATION_PAGES = Metrics.counter(NAMESPACE, "stale_generation_pages")
"""Pages read under another routing generation than their chain's."""

PROMOTIONS = Metrics.counter(NAMESPACE, "promotions")
"""Runs of pages that were settled in the pipeline and promoted."""

LOST_SWAPS = Metrics.counter(NAMESPACE, "lost_swaps")
"""Promotions that found another row than the expected one: it was reread, and nothing was lost."""
