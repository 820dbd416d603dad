"""Every document with a schema is held against it, and the check can fail."""

import pytest
from documented import DOCUMENTS, document_of_command, require_documented
from pydantic import ValidationError

from gapless_pipelines.job.schema import OUTPUTS

LOG = {"format": 1, "table": "conversations", "shards": [], "violations": []}


def test_every_document_with_a_schema_is_held_against_it() -> None:
    assert set(DOCUMENTS.values()) == set(OUTPUTS)


def test_the_longer_words_of_a_command_tell_what_it_prints() -> None:
    assert document_of_command(("delivery", "status", "--json")) == "delivery-status"
    assert document_of_command(("delivery", "check", "--json")) is None


def test_a_key_that_is_missing_or_not_documented_is_noticed() -> None:
    require_documented("delivery-status", LOG)
    with pytest.raises(ValidationError, match="violations"):
        require_documented("delivery-status", {key: LOG[key] for key in ("format", "table", "shards")})
    with pytest.raises(AssertionError, match="later"):
        require_documented("delivery-status", {**LOG, "later": 1})
