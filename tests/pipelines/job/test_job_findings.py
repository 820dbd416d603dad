"""Every way a job file can be wrong: one line `file:line: path: what; what is allowed`, and all of them at once."""

import pickle
from collections.abc import Callable

import pytest

from gapless.errors import ConfigurationError
from gapless_pipelines.job import Finding, InvalidConfiguration, Job

Spoil = Callable[..., list[str]]
TIMESTAMP = "domain: {type: timestamp, precision: s}"
ONE_KEY_WRONG = {
    "an unknown key, with the likely one": (
        ("scope: orders", "scpoe: orders"),
        "job.yaml:2: scpoe: unknown key; did you mean `scope`?",
    ),
    "an unknown key deep inside": (
        ("connections: 4", "conections: 4"),
        "job.yaml:12: source.client.conections: unknown key; did you mean `connections`?",
    ),
    "a duplicate key": (
        ("on_drift: hold", "scope: payments"),
        "job.yaml:26: scope: is given twice, first on line 2; each key once",
    ),
    "a duplicate key deep inside": (
        ("limit: 500", "limit: 500, limit: 600"),
        "job.yaml:17: source.pages.params.limit: is given twice, first on line 17",
    ),
    "text where an integer is due": (
        ("target_rows: 5000", 'target_rows: "5000"'),
        "job.yaml:27: effect.target_rows: a text cannot stand here; allowed: an integer",
    ),
    "a boolean where an integer is due": (
        ("connections: 4", "connections: true"),
        "job.yaml:12: source.client.connections: a boolean cannot stand here; allowed: an integer",
    ),
    "a list where a mapping is due": (
        ("retry: {attempts: 3, backoff: 100ms, max: 2s}", "retry: [3]"),
        "job.yaml:29: retry: a list cannot stand here; allowed: a mapping",
    ),
    "nothing where a mapping is due": (
        ("event: {id: id, position: position}", "event:"),
        "job.yaml:21: source.event: nothing (null) cannot stand here; allowed: a mapping",
    ),
    "an integer where text is due": (
        ("scope: orders", "scope: 12"),
        "job.yaml:2: scope: an integer cannot stand here; allowed: a text",
    ),
    "a number below its range": (
        ("target_rows: 5000", "target_rows: 0"),
        "job.yaml:27: effect.target_rows: Input should be greater than or equal to 1",
    ),
    "a name that no scope can have": (
        ("scope: orders", "scope: my orders"),
        "job.yaml:2: scope: no name for a scope; letters, digits,",
    ),
    "a literal secret": (
        ("token: {env: ORDERS_TOKEN}", "token: hunter2"),
        "job.yaml:7: source.auth.token: a secret never stands in the file itself; allowed: {env: NAME}",
    ),
    "a literal secret that is a number": (
        ("token: {env: ORDERS_TOKEN}", "token: 20020612"),
        "job.yaml:7: source.auth.token: a secret never stands in the file itself;",
    ),
    "a secret from a variable, which would be literal too": (
        ("token: {env: ORDERS_TOKEN}", 'token: "${NAME}"'),
        "job.yaml:7: source.auth.token: a secret never stands in the file itself;",
    ),
    "a secret from an unset variable, where setting it would not help": (
        ("token: {env: ORDERS_TOKEN}", 'token: "${hunter2}"'),
        "job.yaml:7: source.auth.token: a secret never stands in the file itself;",
    ),
    "a literal password of the store": (
        ('{url: "sqlite:///progress.db"}', "{url: postgresql+psycopg://u@h/d, password: hunter2}"),
        "job.yaml:31: store.password: a secret never stands in the file itself;",
    ),
    "a password in the store's URL": (
        ("sqlite:///progress.db", "postgresql+psycopg://u:hunter2@h/d"),
        "job.yaml:31: store.url: a password in the URL; the URL without it, and beside it `password:",
    ),
    "a password among the options of the store's URL": (
        ("sqlite:///progress.db", "postgresql+psycopg://u@h/d?password=hunter2"),
        "job.yaml:31: store.url: a password does not belong among the options",
    ),
    "a password in base_url": (
        ("${ORDERS_URL}", "http://me:hunter2@127.0.0.1/"),
        "job.yaml:6: source.base_url: a user or password in the URL; allowed: `auth`",
    ),
    "a user in base_url": (
        ("${ORDERS_URL}", "http://hunter2@127.0.0.1/"),
        "job.yaml:6: source.base_url: a user or password in the URL; allowed: `auth`",
    ),
    "a secret among the headers": (
        ("Accept: application/json", "Authorization: Bearer hunter2"),
        "job.yaml:8: source.headers: Authorization looks like a secret; allowed: `auth`",
    ),
    "a secret among Beam's options": (
        ("direct_num_workers: 2", "s3_secret_access_key: hunter2"),
        "job.yaml:32: pipeline_options.s3_secret_access_key: holds a secret, which would stand in the job's",
    ),
    "an unset variable": (
        ("${ORDERS_URL}", "https://${HOST}/v1"),
        "job.yaml:6: source.base_url: the environment variable HOST is not set; set HOST, or write",
    ),
    "what is no variable": (
        ("${ORDERS_URL}", "${ORDERS_URL:-http://x}"),
        "job.yaml:6: source.base_url: holds `${` without the name of a variable; write ${NAME}",
    ),
    "a domain of no known type": (
        ("domain: {type: integer}", "domain: {type: number}"),
        "job.yaml:3: domain: no domain; allowed: {type: integer | text | timestamp}, or a list of these",
    ),
    "a domain of no type": (
        ("domain: {type: integer}", "domain: integer"),
        "job.yaml:3: domain: no domain; allowed: {type: integer",
    ),
    "a precision that is none": (
        ("domain: {type: integer}", "domain: {type: timestamp, precision: minutes}"),
        "job.yaml:3: domain.precision: unknown word; allowed: 's', 'ms', 'us' or 'ns'",
    ),
    "a timestamp without precision": (
        ("domain: {type: integer}", "domain: {type: timestamp}"),
        "job.yaml:3: domain.precision: missing; it has to be given",
    ),
    "a zone that is unknown": (
        (
            "domain: {type: integer}",
            "domain: {type: timestamp, precision: s, read: {format: '%Y-%m-%d', zone: Mars/Olympus}}",
        ),
        "job.yaml:3: domain.read: zone 'Mars/Olympus' is not known here; write an IANA name",
    ),
    "a format without a zone": (
        ("domain: {type: integer}", "domain: {type: timestamp, precision: s, read: {format: '%Y-%m-%d'}}"),
        "job.yaml:3: domain.read: format '%Y-%m-%d' needs either an offset (%z) or a zone; such as",
    ),
    "a list domain of nothing": (
        ("domain: {type: integer}", "domain: []"),
        "job.yaml:3: domain: List should have at least 1 item",
    ),
    "a list domain with an impossible part": (
        ("domain: {type: integer}", "domain: [{type: integer}, {type: text, collation: de_DE}]"),
        "job.yaml:3: domain[1].collation: ",
    ),
    "a list domain with a part of no known type": (
        ("domain: {type: integer}", "domain:\n  - {type: integer}\n  - {type: float}"),
        "job.yaml:5: domain[1]: unknown kind; allowed as 'type': 'integer', 'text', 'timestamp'",
    ),
    "a long list domain with an impossible part": (
        ("domain: {type: integer}", "domain: {type: list, items: [{type: text, collation: de_DE}]}"),
        "job.yaml:3: domain.items[0].collation: ",
    ),
    "a collation that is unknown": (
        ("domain: {type: integer}", "domain: {type: text, collation: de_DE}"),
        "job.yaml:3: domain.collation: ",
    ),
    "a start that is no position": (
        ("start: 0", "start: soon"),
        "job.yaml:24: range.start: is no position: ",
    ),
    "a start that is a float": (
        ("start: 0", "start: 1.5"),
        "job.yaml:24: range.start: is no position: ",
    ),
    "a stop that is a naive time": (
        ("domain: {type: integer}\n", f"{TIMESTAMP}\n", "start: 0, stop: null", "stop: 2013-01-01T00:00:00"),
        "job.yaml:24: range.stop: is no position: ",
    ),
    "a stop at the start": (
        ("start: 0, stop: null", "start: 5, stop: 5"),
        "job.yaml:24: range.stop: does not lie after `start`; a stop after the start",
    ),
    "a stop before the start": (
        ("start: 0, stop: null", "start: 5, stop: -1"),
        "job.yaml:24: range.stop: does not lie after `start`; a stop after the start",
    ),
    "a closed range without an end": (
        (
            "page: {position: complete_through.position, inclusive: complete_through.inclusive}",
            'assert: {closed_range: true, reason: "2013 is over"}',
        ),
        "job.yaml:23: source.certificate.assert.closed_range: asserts a range that has no end; with it,",
    ),
    "an assertion without a reason": (
        (
            "page: {position: complete_through.position, inclusive: complete_through.inclusive}",
            "assert: {closed_range: true}",
            "stop: null",
            "stop: 10",
        ),
        "job.yaml:23: source.certificate.assert.reason: missing; it has to be given",
    ),
    "two certificates": (
        ("  certificate:\n", "  certificate:\n    none: {}\n"),
        "job.yaml:22: source.certificate: ",
    ),
    "no certificate at all": (
        (
            "certificate:\n    page: {position: complete_through.position, inclusive: complete_through.inclusive}",
            "certificate: {}",
        ),
        "job.yaml:22: source.certificate: ",
    ),
    "two ways to the partitions": (
        ("  partitions:\n", "  partitions:\n    list: [eu, us]\n"),
        "job.yaml:13: source.partitions: ",
    ),
    "a bad path expression": (
        ("records: events", "records: events..all"),
        "job.yaml:18: source.pages.records: 'events..all' is no path",
    ),
    "a bad path in a list of paths": (
        ("position: position}", "position: [at, 'x[']}"),
        "job.yaml:21: source.event.position[1]: 'x[' is no path",
    ),
    "more paths than the domain has parts": (
        ("position: position}", "position: [at, id]}"),
        "job.yaml:21: source.event.position: names several paths; one path, or a domain that is a list",
    ),
    "fewer paths than the domain has parts": (
        (
            "domain: {type: integer}",
            "domain: [{type: integer}, {type: integer}, {type: text}]",
            "position: position}",
            "position: [at, id]}",
            "start: 0",
            "start: null",
        ),
        "job.yaml:21: source.event.position: names 2 paths; 3, one for each part of the domain, or one path",
    ),
    "a template field that does not exist": (
        ("{partition.id}", "{partitions.id}"),
        "job.yaml:16: source.pages.path: {partitions.id} is unknown; allowed in braces: partition.<field>",
    ),
    "an expression in a template": (
        ("{partition.id}", "{partition.id!r}"),
        "job.yaml:16: source.pages.path: {partition.id!r} is unknown; allowed in braces:",
    ),
    "a template that needs an end the range has not": (
        ("limit: 500", 'limit: 500, until: "{stop}"'),
        "job.yaml:17: source.pages.params.until: uses {stop}, which the job does not give; with it,",
    ),
    "a misspelt Beam option": (
        ("direct_num_workers: 2", "direct_num_worker: 2"),
        "job.yaml:32: pipeline_options.direct_num_worker: is no option of Beam's; did you mean "
        "`direct_num_workers`?",
    ),
    "a Beam option of another type": (
        ("direct_num_workers: 2", "direct_num_workers: two"),
        "job.yaml:32: pipeline_options.direct_num_workers: ",
    ),
    "an unknown runner": (
        ("runner: local", "runner: lokal"),
        "job.yaml:32: pipeline_options.runner: `lokal` is no engine that gapless runs on; did you mean `local`?",
    ),
    "a SQLite file where workers may be elsewhere": (
        ("runner: local", "runner: DataflowRunner"),
        "job.yaml:32: pipeline_options.runner: DataflowRunner may run workers on other machines, where a "
        "SQLite file is not; a PostgreSQL store",
    ),
    "a store of an unknown kind": (
        ("sqlite:///progress.db", "mysql://h/d"),
        "job.yaml:31: store.url: 'mysql' is no kind of store; allowed: sqlite:///FILE or postgresql",
    ),
    "a store that is no URL": (
        ("sqlite:///progress.db", "progress.db"),
        "job.yaml:31: store.url: the store's URL cannot be read; allowed: sqlite:///FILE",
    ),
    "a store in memory": (
        ("sqlite:///progress.db", "sqlite://"),
        "job.yaml:31: store.url: a SQLite store needs a file",
    ),
    "a home folder that nothing would follow": (
        ("out/orders,", "~/orders,"),
        "job.yaml:27: effect.path: `~` is not followed here; the path written out, or ${HOME}",
    ),
    "a duration without a unit": (
        ("backoff: 100ms", "backoff: 100"),
        "job.yaml:29: retry.backoff: not a duration; allowed: a number with its unit, such as 500ms, 10s, 15m",
    ),
    "a duration in words": (
        ("connect: 10s", "connect: ten seconds"),
        "job.yaml:10: source.client.timeout.connect: not a duration; allowed: a number with its unit",
    ),
    "a column of no known type": (
        ("amount_cents: int64", "amount_cents: int65"),
        "job.yaml:25: schema.amount_cents: 'int65' is no column type; did you mean int64?",
    ),
    "a column that is gapless's own": (
        ("amount_cents: int64", "_partition: string"),
        "job.yaml:25: schema._partition: '_partition' cannot be a column; reserved are",
    ),
    "dead letters among the data": (
        ("path: out/orders_dead", "path: ./out/orders/"),
        "job.yaml:28: dead_letters.path: is the folder of the effect's own files; another folder",
    ),
    "a version that is not known": (
        ("version: 1", "version: 2"),
        "job.yaml:1: version: is none that this version of gapless knows; allowed: 1",
    ),
    "a version that is text": (
        ("version: 1", 'version: "1"'),
        "job.yaml:1: version: no version of the format; allowed: 1",
    ),
    "a version that only compares equal": (
        ("version: 1", "version: 1.0"),
        "job.yaml:1: version: no version of the format; allowed: 1",
    ),
    "a mapping where one of several kinds of values is due": (
        ("limit: 500", "limit: {max: 500}"),
        "job.yaml:17: source.pages.params.limit: a mapping cannot stand here; allowed: a text or an integer",
    ),
    "no version": (
        ("version: 1\n", ""),
        "job.yaml:1: version: missing; it has to be given",
    ),
}


@pytest.mark.parametrize(("replacements", "expected"), ONE_KEY_WRONG.values(), ids=ONE_KEY_WRONG.keys())
def test_one_wrong_key_is_one_finding_at_its_line(
    spoil: Spoil, replacements: tuple[str, ...], expected: str
) -> None:
    findings = spoil(*zip(replacements[::2], replacements[1::2], strict=True))

    others = [finding for finding in findings if not finding.startswith(expected)]
    # A key that is misspelt is missing under its right name, too.
    assert [line for line in others if not line.endswith("missing; it has to be given")] == []
    assert len(findings) > len(others), findings
    assert not any("hunter2" in finding or "20020612" in finding for finding in findings)


def test_all_problems_of_a_file_are_told_at_once_by_line(spoil: Spoil) -> None:
    findings = spoil(
        ("scope: orders", "scope: my orders"),
        ("${ORDERS_URL}", "${NO_SUCH_URL}"),
        ("records: events", "records: a..b"),
        ("start: 0", "start: soon"),
        ("amount_cents: int64", "amount_cents: int65"),
        ("compression: snappy", "compression: zip"),
        ("sqlite:///", "mysql:///"),
        ("direct_num_workers", "direct_num_worker"),
        ("on_drift: hold", "scope: again"),
    )

    lines = [int(finding.split(":")[1]) for finding in findings]
    assert lines == [2, 6, 18, 24, 25, 26, 27, 31, 32]


def test_a_problem_in_one_part_hides_none_in_what_depends_on_others(spoil: Spoil) -> None:
    findings = spoil(
        ("records: events", "recrods: events"),
        ("start: 0, stop: null", "start: soon"),
        ("page: {position: complete_through.position,", "page: {position: [a, b],"),
        ("limit: 500", 'limit: 500, until: "{stop}"'),
    )

    assert [finding.split("; ")[0] for finding in findings] == [
        "job.yaml:15: source.pages.records: missing",
        "job.yaml:17: source.pages.params.until: uses {stop}, which the job does not give",
        "job.yaml:18: source.pages.recrods: unknown key",
        "job.yaml:23: source.certificate.page.position: names several paths",
        "job.yaml:24: range.start: is no position: 'soon' is no decimal integer",
    ]


def test_an_unset_variable_brings_no_second_finding_about_the_value_it_would_have(spoil: Spoil) -> None:
    findings = spoil(("connections: 4", "connections: ${MANY}"), ("start: 0", 'start: "${FROM}"'))

    assert [finding.split("; ")[0] for finding in findings] == [
        "job.yaml:12: source.client.connections: the environment variable MANY is not set",
        "job.yaml:24: range.start: the environment variable FROM is not set",
    ]


def test_the_error_carries_its_findings_and_survives_pickling(load: Callable[[str], Job], good: str) -> None:
    with pytest.raises(InvalidConfiguration) as caught:
        load(good.replace("scope: orders", "scope: 1"))

    error = pickle.loads(pickle.dumps(caught.value))
    assert isinstance(error, ConfigurationError)
    assert error.code == "configuration"
    assert error.findings == [
        Finding("job.yaml", 2, ("scope",), "an integer cannot stand here", "allowed: a text")
    ]
    assert str(error) == "job.yaml:2: scope: an integer cannot stand here; allowed: a text"


def test_a_finding_is_one_line_whatever_the_key_holds(load: Callable[[str], Job], good: str) -> None:
    with pytest.raises(InvalidConfiguration) as caught:
        load(good + '"two\\nlines": 1\n')

    assert str(caught.value).startswith('job.yaml:35: "two\\nlines": unknown key')
    assert len(str(caught.value).splitlines()) == 1
