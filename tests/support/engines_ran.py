"""Whether the tests of every engine have run, by the reports of pytest:

    python engines_ran.py REPORT.xml [...]

Prints how many ran, by engine. Exits with 1 where a file of tests has none on an engine that it is for, or where one was skipped.
"""

import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from xml.etree import ElementTree

from engines import ENGINES, Engine

FOR_ALL = ("test_batch", "test_kills", "test_many_kills")
FOR_STREAMS = ("test_streams",)


def problems(reports: Iterable[Path]) -> tuple[Counter[tuple[str, str]], list[str]]:
    """How many tests ran by file and engine, and what is missing."""
    ran: Counter[tuple[str, str]] = Counter()
    found = []
    for report in reports:
        for case in ElementTree.parse(report).iter("testcase"):
            package, _, module = case.get("classname", "").rpartition(".")
            if package != "tests.engines":
                continue
            if case.find("skipped") is not None:
                found.append(f"{module}::{case.get('name')} was skipped")
            else:
                ran.update((module, engine.name) for engine in _engines_of(case.get("name", "")))
    for engine in ENGINES:
        for module in (*FOR_ALL, *(FOR_STREAMS if engine.streams else ())):
            if not ran[module, engine.name]:
                found.append(f"{module} did not run on {engine}")
    return ran, found


def _engines_of(name: str) -> list[Engine]:
    """Those whose names are among the parameters of a test's name, after which several processes that test write their group."""
    parameters = name.partition("[")[2].partition("]")[0].replace("+", "-").split("-")
    return [engine for engine in ENGINES if engine.name in parameters]


def main(arguments: Sequence[str]) -> int:
    ran, found = problems(map(Path, arguments))
    for engine in ENGINES:
        count = sum(number for (_, name), number in ran.items() if name == engine.name)
        print(f"{engine}: {count} tests ran")
    for one in found:
        print(one, file=sys.stderr)
    return 1 if found or not arguments else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
