"""Property tests are bounded by their number of examples, not by the machine's speed."""

from hypothesis import settings

settings.register_profile("progress", deadline=None)
settings.load_profile("progress")
