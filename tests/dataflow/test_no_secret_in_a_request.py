"""Whatever secrets the launcher has at hand, none is in what it sends: neither plain nor packed, nor in a DoFn as unpickled."""

import base64
import pickle
from collections.abc import Iterator
from typing import Any

import apache_beam as beam
import pytest
from dataflow_jobs import FILE_TOKEN, JOBS, PASSWORD, TOKEN, load, request_of
from dataflow_request import build_request

every_job = pytest.mark.parametrize("name", JOBS)
SECRETS = (TOKEN, PASSWORD, FILE_TOKEN)


def found_in(request: Any) -> set[tuple[str, str]]:
    """(secret, place) of every one that stands anywhere in the request."""
    texts = [
        *request.texts(),
        *((type(one).__name__, text) for one in request.do_fns() for text in texts_of(one)),
    ]
    return {
        (secret, where)
        for where, text in texts
        for secret in SECRETS
        for form in forms_of(secret)
        if form in text
    }


def forms_of(secret: str) -> list[bytes]:
    plain = secret.encode()
    # A piece of base64 stands at one of three offsets.
    shifted = [base64.b64encode(b"x" * shift + plain)[4:-4] for shift in range(3)]
    return [plain, plain.hex().encode(), secret.encode("utf-16-le"), *shifted]


def texts_of(value: object, seen: set[int] | None = None) -> Iterator[bytes]:
    """Every text and every bytes that can be reached from an object: by attributes, items, closures and defaults."""
    seen = set() if seen is None else seen
    if id(value) in seen or isinstance(value, type):
        return
    seen.add(id(value))
    if isinstance(value, str):
        yield value.encode("utf-8", "surrogatepass")
        return
    if isinstance(value, bytes):
        yield value
        return
    for part in _parts(value):
        yield from texts_of(part, seen)


def _parts(value: Any) -> Iterator[object]:
    if isinstance(value, dict):
        yield from value.keys()
        yield from value.values()
    elif isinstance(value, list | tuple | set | frozenset):
        yield from value
    if type(value).__module__.partition(".")[0] in ("builtins", "re") and not callable(value):
        return
    yield from getattr(value, "__dict__", {}).values()
    for kind in type(value).__mro__:
        for name in (slots,) if isinstance(slots := getattr(kind, "__slots__", ()), str) else slots:
            yield getattr(value, name, None)
    yield getattr(value, "__defaults__", None)
    for cell in getattr(value, "__closure__", None) or ():
        yield cell.cell_contents
    yield getattr(value, "__self__", None)


@every_job
def test_no_secret_is_anywhere_in_the_request(built, name):
    request = built(name)
    assert found_in(request) == set()
    texts = [text for _, text in request.texts()] + [
        text for one in request.do_fns() for text in texts_of(one)
    ]
    assert any(b"ORDERS_TOKEN" in text for text in texts), "the reference travels, and was looked at"
    assert any(b"PROGRESS_PASSWORD" in text for text in texts)


@every_job
def test_no_secret_of_a_file_is_in_the_request(tmp_path, monkeypatch, name):
    secret = tmp_path / "token"
    secret.write_text(FILE_TOKEN)
    monkeypatch.setenv("PROGRESS_PASSWORD", PASSWORD)
    load(tmp_path)
    path = tmp_path / "orders.yaml"
    path.write_text(path.read_text().replace("env: ORDERS_TOKEN", f"file: {secret}"))
    from gapless_pipelines.job import load_job

    request = request_of(name, load_job(path))
    assert found_in(request) == set()
    assert any(str(secret).encode() in text for one in request.do_fns() for text in texts_of(one))


class Careless(beam.DoFn):
    def __init__(self, secret: object) -> None:
        self._secret = secret

    def process(self, element: object) -> Iterator[object]:
        yield element


@pytest.mark.parametrize(
    "kept_as", [TOKEN, TOKEN.encode(), {"deep": [(TOKEN,)]}, base64.b64encode(TOKEN.encode())]
)
def test_the_search_finds_a_secret_wherever_a_careless_author_leaves_it(kept_as):
    def build(pipeline: beam.Pipeline) -> None:
        _ = pipeline | beam.Create([1]) | beam.ParDo(Careless(kept_as))

    assert {secret for secret, _ in found_in(build_request(build))} == {TOKEN}


def test_the_search_finds_a_secret_in_a_closure_an_element_and_an_option():
    def by_closure(pipeline: beam.Pipeline) -> None:
        secret = pickle.loads(pickle.dumps(PASSWORD))
        _ = pipeline | beam.Create([1]) | beam.Map(lambda one: (one, secret))

    def by_element(pipeline: beam.Pipeline) -> None:
        _ = pipeline | beam.Create([PASSWORD])

    def by_option(pipeline: beam.Pipeline) -> None:
        _ = pipeline | beam.Create([1])

    for build, *arguments in ((by_closure,), (by_element,), (by_option, f"--labels=key={PASSWORD}")):
        assert {secret for secret, _ in found_in(build_request(build, *arguments))} == {PASSWORD}
