"""What a job file may not say yet: known words, refused by name."""

from collections.abc import Callable

import pytest

from gapless_pipelines.job import InvalidConfiguration, Job

Spoil = Callable[..., list[str]]
NOT_BUILT = {
    "a SQL source": (("type: http\n", "type: sql\n"), 5, "source.type: `type: sql`"),
    "a source of files": (("type: http\n", "type: files\n"), 5, "source.type: `type: files`"),
    "basic auth": (
        ("{type: bearer, token: {env: ORDERS_TOKEN}}", "{type: basic, user: me}"),
        7,
        "source.auth.type",
    ),
    "an API key": (("type: bearer", "type: api_key"), 7, "source.auth.type"),
    "OAuth": (("type: bearer", "type: oauth2_client_credentials"), 7, "source.auth.type"),
    "a secret manager": (("{env: ORDERS_TOKEN}", "{gcp_secret: a/b}"), 7, "source.auth.token.gcp_secret"),
    "a rate limit": (("connections: 4", "rate: {requests: 10, per: 1s}"), 12, "source.client.rate: `rate`"),
    "certificates of a company": (
        ("connections: 4", "tls: {ca: /etc/ca.pem}"),
        12,
        "source.client.tls: `tls`",
    ),
    "POST": (
        ("records: events", "method: POST\n    records: events"),
        18,
        "source.pages.method: `method: POST`",
    ),
    "a JSON body": (("params: {limit: 500}", "json: {limit: 500}"), 17, "source.pages.json: `json`"),
    "next-URL paging": (("type: cursor, from", "type: next_url, from"), 19, "source.pages.next.type"),
    "page numbers": (("type: cursor, from", "type: page_number, from"), 19, "source.pages.next.type"),
    "errors inside a 200": (
        ("records: events", "errors: [{path: error, is: present}]\n    records: events"),
        18,
        "source.pages.errors: `errors`",
    ),
    "a SQL effect": (
        ("{type: parquet, path: out/orders,", "{type: sql, path: out/orders,"),
        27,
        "effect.type",
    ),
    "a Python effect": (
        ("{type: parquet, path: out/orders,", "{type: python, path: out/orders,"),
        27,
        "effect.type",
    ),
    "files in a bucket": (("out/orders,", "gs://bucket/orders,"), 27, "effect.path: a folder at a URL"),
    "splitting by range": (("on_drift: hold", "split: {by: range}"), 26, "split: `split`"),
    "a certificate in a header": (
        ("page: {position: complete_through", "header: {position: complete_through"),
        23,
        "source.certificate.header",
    ),
    "an assertion by time": (
        (
            "page: {position: complete_through.position, inclusive: complete_through.inclusive}",
            'assert: {settled_after: 15m, reason: "vendor says so"}',
        ),
        23,
        "source.certificate.assert.settled_after: `settled_after`",
    ),
}


@pytest.mark.parametrize(("replacement", "line", "beginning"), NOT_BUILT.values(), ids=NOT_BUILT.keys())
def test_what_is_known_but_not_built_says_so_and_nothing_else(
    spoil: Spoil, replacement: tuple[str, str], line: int, beginning: str
) -> None:
    (finding,) = spoil(replacement)

    assert finding.startswith(f"job.yaml:{line}: {beginning}")
    assert finding.endswith("is not built yet in this version")


def test_a_job_about_a_message_log_is_told_apart(load: Callable[[str], Job]) -> None:
    with pytest.raises(InvalidConfiguration) as caught:
        load("version: 1\ndelivery:\n  url: sqlite:///app.db\n  table: conversations\n")

    assert [str(finding) for finding in caught.value.findings] == [
        "job.yaml:2: delivery: is about a message log; a job with a `source`; `gapless delivery` reads this one,"
        " in a file of its own"
    ]
