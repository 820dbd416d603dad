"""`gapless check`: whether a job file is right, and what is understood by it, before anything is written."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any

import typer

from gapless_pipelines.cli.arguments import AsJson, Debug, JobFile
from gapless_pipelines.cli.failures import USAGE, VIOLATED
from gapless_pipelines.cli.meaning import job_file
from gapless_pipelines.cli.printing import emit, number, plural, printable, say_all
from gapless_pipelines.cli.wording import bound_words

_BASES = {
    "certified": "the source certifies: the frontier will be certified",
    "asserted": "assumed by the job file: the frontier will be labelled asserted",
    "none": "the source certifies nothing: page tokens are kept, and there is no frontier",
}
COLUMNS_SHOWN = 30


def check(
    job: JobFile = None,
    offline: Annotated[
        bool, typer.Option("--offline", help="Only validate: ask neither source nor store.")
    ] = False,
    as_json: AsJson = False,
    debug: Debug = False,
) -> int:
    """Validate a job file, read two pages, and say what is understood. Writes nothing."""
    from gapless_pipelines.job import load_job

    path = job_file(job)
    loaded = load_job(path)
    loaded.engine()
    from gapless_pipelines.cli.checking import understood

    document = understood(loaded, offline=offline)
    if as_json:
        emit(document)
    else:
        say_all(check_lines(document))
    if offline:
        return 0
    if document["store"]["differences"]:
        return USAGE
    return VIOLATED if document["violations"] else 0


def check_lines(document: Mapping[str, Any]) -> Iterator[str]:
    """What was understood, for a reader."""
    settings = document["settings"]
    yield f"{printable(document['job'])}: valid; scope {document['scope']}, domain {_compact(document['domain'])}"
    yield f"  range: {_range_text(settings['range'])}"
    yield f"  source: {printable(settings['source']['base_url'])}, auth {_auth_text(settings['source']['auth'])}"
    yield f"  client: {_client_text(settings['source']['client'])}"
    yield f"  effect: {settings['effect']['type']} to {printable(settings['effect']['path'])}, on drift: {settings['on_drift']}"
    yield f"  stream: {_stream_text(document['stream'], settings['stream'])}"
    if "store" not in document:
        yield "offline: neither the source nor the store was asked"
        return
    yield from _source_lines(document)
    yield from _store_lines(document["store"])


def _source_lines(document: Mapping[str, Any]) -> Iterator[str]:
    partitions, parallelism = document["partitions"], document["parallelism"]
    names = ", ".join(map(printable, partitions["first"]))
    more = ", …" if partitions["count"] > len(partitions["first"]) else ""
    yield f"  partitions: {plural(partitions['count'], 'partition')} ({names}{more}), {_list_text(partitions)}"
    yield (
        f"  parallelism: a partition's pages are read one after the other;"
        f" up to {plural(parallelism['at_once'], 'partition')} at once"
    )
    for index, page in enumerate(document["pages"], 1):
        yield f"  page {index} of {printable(page['partition'])}: {_page_text(page)}"
    yield f"  certificate: {_certificate_text(document)}"
    yield f"  columns: {_columns_text(document['columns'])}"
    for violation in document["violations"]:
        yield f"violation: {printable(violation)}"


def _store_lines(store: Mapping[str, Any]) -> Iterator[str]:
    states = {
        "new": "not there yet; the first run creates it",
        "new scope": "there, without this scope; the first run adds it",
        "existing": "holds this scope",
    }
    differs = bool(store["differences"])
    yield f"  store: {printable(store['url'])}: {'holds another scope of this name' if differs else states[store['state']]}"
    if store["connections_per_process"] is not None:
        yield (
            f"    connections: at most (worker processes + 1) x {store['connections_per_process']}; what PostgreSQL's"
            " max_connections has to allow"
        )
    for one in store["differences"]:
        yield f"    {printable(one['key'])}: {printable(one['stored'])} in the store, {printable(one['given'])} in the job file"
    if differs:
        domain = any(one["key"].partition(".")[0] == "domain" for one in store["differences"])
        anew = "" if domain else ", or start it over: `gapless epoch rebuild JOB --reason ...`"
        yield f"    a run would refuse: give the changed job another scope name{anew}"


def _compact(value: object) -> str:
    return json.dumps(value, separators=(", ", ": "))


def _range_text(ends: Mapping[str, Any]) -> str:
    start = "the source's beginning" if ends["start"] is None else f"{printable(ends['start'])}, included"
    stop = "the source's end" if ends["stop"] is None else f"{printable(ends['stop'])}, excluded"
    return f"from {start}, to {stop}"


def _auth_text(auth: Mapping[str, Any]) -> str:
    references = [
        f"{key} from {kind} {place}"
        for key, ref in auth.items()
        if isinstance(ref, dict)
        for kind, place in ref.items()
    ]
    return ", ".join([auth["type"], *map(printable, references)])


def _client_text(client: Mapping[str, Any]) -> str:
    timeout, retry = client["timeout"], client["retry"]
    statuses = ", ".join(map(str, retry["on"]))
    return (
        f"time-outs {timeout['connect']} to connect, {timeout['read']} to read; {retry['attempts']} attempts on {statuses},"
        f" {retry['backoff']} to {retry['max']} apart; {client['connections']} connections"
    )


def _stream_text(stream: Mapping[str, Any], polling: Mapping[str, Any]) -> str:
    if stream["refused"] is not None:
        return f"would be refused: {stream['refused']}; {stream['remedy']}"
    again = {
        "token": "the last page's token",
        "last_page": "the last page",
        "since": "what follows the certified bound",
    }
    return (
        f"asks for {again[stream['tail']]} again, {polling['poll']} later and, while nothing comes, up to"
        f" {polling['longest']}; looks at the list every {polling['look']}"
    )


def _list_text(partitions: Mapping[str, Any]) -> str:
    generation = partitions["routing_generation"]
    routing = f", routing generation {printable(generation)}" if generation else ""
    if partitions["list"] == "certified":
        return f"list certified {bound_words(partitions['list_bound'])}{routing}"
    return f"list frozen at the first run{routing}"


def _page_text(page: Mapping[str, Any]) -> str:
    text = plural(page["events"], "event")
    if page["events"]:
        text += (
            f", positions {printable(page['first_position'])} to {printable(page['last_position'])},"
            f" first id {printable(page['first_id'])}"
        )
    certificate = page["certificate"]
    text += ", no certificate" if certificate is None else f", certificate {bound_words(certificate)}"
    if page["ends"] is not None:
        return text + (", the chain ends here" if page["ends"] == "end" else ", the range is proved")
    return f"{text}, next token {page['next_token']} (digest)"


def _certificate_text(document: Mapping[str, Any]) -> str:
    certificate = document["certificate"]
    text = _BASES[certificate["basis"]]
    if certificate["reason"] is not None:
        text += f" ({printable(certificate['reason'])})"
    if certificate["basis"] == "certified" and certificate["on_pages"] == 0:
        text += f"; none came with the first {plural(len(document['pages']), 'page')}: without one nothing is claimed"
    return text


def _columns_text(columns: Mapping[str, Any]) -> str:
    types: Sequence[tuple[str, str]] = list(columns["types"].items())
    shown = ", ".join(f"{printable(name)} {kind}" for name, kind in types[:COLUMNS_SHOWN])
    more = len(types) - COLUMNS_SHOWN
    rest = f" and {number(more)} more" if more > 0 else ""
    note = "as frozen for the scope" if columns["frozen"] else "inferred; frozen at the first run"
    return f"{shown or 'none'}{rest} ({note})"
