"""Strict YAML: PyYAML's parser with JSON's scalars only, each key once, and the line of every value.

What YAML 1.1 makes of `NO`, `0123`, `12:30:45` or `2013-01-01` stays text. Anchors, aliases, merge keys, tags
and further documents are refused, so that the file is a tree as large as it looks."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import yaml

from gapless_pipelines.findings import Finding, InvalidConfiguration, KeyPath
from gapless_pipelines.job.json_scalar import json_scalar, kind_of
from gapless_pipelines.job.variables import SYNTAX, expand
from gapless_pipelines.job.yaml_errors import MAX_DEPTH, TooDeep, syntax_finding

_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(slots=True)
class Document:
    """A job file as read. `value` holds dict, list, str, int, float, bool and None.

    `findings` are those of the YAML itself. Values under `spoiled` paths are not what was meant; their finding
    stands in `findings`, or in `unset` where only a variable is missing: who reads less than the whole file needs
    less than all variables."""

    file: str
    value: dict[str, Any] = field(default_factory=dict)
    lines: dict[KeyPath, int] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    spoiled: set[KeyPath] = field(default_factory=set)
    unset: dict[KeyPath, list[Finding]] = field(default_factory=dict)

    def finding(self, path: KeyPath, what: str, allowed: str) -> Finding:
        """A finding at a path, or at the nearest part of it that stands in the file."""
        known = path
        while known and known not in self.lines:
            known = known[:-1]
        return Finding(self.file, self.lines.get(known, 1), path, what, allowed)

    def is_spoiled(self, path: KeyPath) -> bool:
        return any(path[:length] in self.spoiled for length in range(len(path) + 1))


def parse_document(text: str, file: str, environment: Mapping[str, str]) -> Document:
    """Read a job file's text. Lesser findings are in the document.

    Raises InvalidConfiguration where it is no YAML, or no mapping."""
    document = Document(file)
    builder = _Builder(document, environment)
    try:
        events = iter(yaml.parse(text, Loader=yaml.SafeLoader))
        root = builder.root(events)
    except yaml.YAMLError as error:
        raise InvalidConfiguration([*document.findings, syntax_finding(error, text, file)]) from None
    if not isinstance(root, dict) or not root:
        what = "is empty" if not root else f"is {kind_of(root)}"
        allowed = "a mapping that begins with `version: 1`"
        raise InvalidConfiguration([*document.findings, document.finding((), what, allowed)])
    document.value = root
    return document


class _Builder:
    """Builds values from the parser's events, never deeper than MAX_DEPTH."""

    def __init__(self, document: Document, environment: Mapping[str, str]) -> None:
        self._document = document
        self._environment = environment

    def root(self, events: Iterator[yaml.Event]) -> object:
        root: object = None
        documents = 0
        for event in events:
            if isinstance(event, yaml.DocumentStartEvent):
                documents += 1
                if documents > 1:
                    self._report((), event, "a second YAML document begins", "one document, one job a file")
                    break
                root = self._node(next(events), (), events)
        return root

    def _node(self, event: yaml.Event, path: KeyPath, events: Iterator[yaml.Event]) -> object:
        if len(path) > MAX_DEPTH:
            raise TooDeep(_line(event))
        self._document.lines.setdefault(path, _line(event))
        self._refuse_magic(event, path)
        if isinstance(event, yaml.MappingStartEvent):
            return self._mapping(path, events)
        if isinstance(event, yaml.SequenceStartEvent):
            return self._sequence(path, events)
        if isinstance(event, yaml.ScalarEvent):
            return self._scalar(event, path)
        return None

    def _refuse_magic(self, event: yaml.Event, path: KeyPath) -> None:
        # Their names are not repeated: unquoted secrets can look like aliases and tags.
        if isinstance(event, yaml.AliasEvent):
            self._spoil(
                path, event, "is a YAML alias (*)", "the value itself; text that begins with * in quotes"
            )
        elif getattr(event, "anchor", None) is not None:
            self._spoil(path, event, "has a YAML anchor (&)", "no anchors; text that begins with & in quotes")
        elif getattr(event, "tag", None) is not None:
            self._spoil(path, event, "has a YAML tag (!)", "no tags; text that begins with ! in quotes")

    def _mapping(self, path: KeyPath, events: Iterator[yaml.Event]) -> dict[str, object]:
        mapping: dict[str, object] = {}
        for event in events:
            if isinstance(event, yaml.MappingEndEvent):
                break
            key = self._key(event, path, events)
            if key is None:
                self._skip(next(events), events)
                continue
            here = (*path, key)
            if key in mapping:
                first = self._document.lines[here]
                self._report(here, event, f"is given twice, first on line {first}", "each key once")
                self._skip(next(events), events)
                continue
            value_event = next(events)
            # A mapping or list is looked for at its key, a value where it stands itself.
            at = value_event if isinstance(value_event, yaml.ScalarEvent) else event
            self._document.lines[here] = _line(at)
            mapping[key] = self._node(value_event, here, events)
        return mapping

    def _key(self, event: yaml.Event, path: KeyPath, events: Iterator[yaml.Event]) -> str | None:
        if not isinstance(event, yaml.ScalarEvent):
            self._spoil(path, event, "has a key that is no text", "keys of plain text")
            self._skip(event, events)
            return None
        key: str = event.value
        if key == "<<" and event.style is None:
            allowed = "write the keys out where they are needed"
            self._spoil((*path, key), event, "is a YAML merge key", allowed)
            return None
        self._refuse_magic(event, (*path, key))
        return self._whole(key, path, event)

    def _sequence(self, path: KeyPath, events: Iterator[yaml.Event]) -> list[object]:
        items: list[object] = []
        for event in events:
            if isinstance(event, yaml.SequenceEndEvent):
                break
            items.append(self._node(event, (*path, len(items)), events))
        return items

    def _skip(self, event: yaml.Event, events: Iterator[yaml.Event]) -> None:
        """Pass over one node of which nothing is kept."""
        depth = 0
        while True:
            depth += isinstance(event, yaml.CollectionStartEvent)
            depth -= isinstance(event, yaml.CollectionEndEvent)
            if depth == 0:
                return
            event = next(events)

    def _scalar(self, event: yaml.ScalarEvent, path: KeyPath) -> object:
        expansion = expand(event.value, self._environment)
        if expansion.malformed:
            self._spoil(path, event, "holds `${` without the name of a variable", SYNTAX)
        for name in expansion.unset:
            what = f"the environment variable {name} is not set"
            allowed = f"set {name}, or write the value here"
            self._document.unset.setdefault(path, []).append(self._at(path, event, what, allowed))
            self._document.spoiled.add(path)
        text = self._whole(expansion.text, path, event)
        if text is None or event.style is not None:
            return text
        try:
            return json_scalar(text)
        except ValueError as error:
            self._spoil(path, event, str(error), "a number that a computer can hold, or text in quotes")
            return None

    def _whole(self, text: str, path: KeyPath, event: yaml.Event) -> str | None:
        """Text with the pairs joined that JSON writes as two escapes; None, and a finding, where a half is left."""
        if not _SURROGATE.search(text):
            return text
        try:
            return text.encode("utf-16", "surrogatepass").decode("utf-16")
        except UnicodeDecodeError:
            self._spoil(path, event, "holds half of a surrogate pair", "text that UTF-8 can hold")
            return None

    def _spoil(self, path: KeyPath, event: yaml.Event, what: str, allowed: str) -> None:
        self._report(path, event, what, allowed)
        self._document.spoiled.add(path)

    def _report(self, path: KeyPath, event: yaml.Event, what: str, allowed: str) -> None:
        self._document.findings.append(self._at(path, event, what, allowed))

    def _at(self, path: KeyPath, event: yaml.Event, what: str, allowed: str) -> Finding:
        return Finding(self._document.file, _line(event), path, what, allowed)


def _line(event: yaml.Event) -> int:
    """From 1. PyYAML's parser marks every event; only its types leave that open."""
    return event.start_mark.line + 1 if event.start_mark is not None else 1
