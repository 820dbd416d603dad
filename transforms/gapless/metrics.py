"""Every Beam metric of gapless, once."""

from apache_beam.metrics.metric import Metrics

NAMESPACE = "gapless"

LATE_PROGRESS = Metrics.counter(NAMESPACE, "late_progress")
"""Elements that told of a partition what was known already, or less."""
