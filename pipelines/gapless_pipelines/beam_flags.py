"""Beam's own list of pipeline options, as a parser that refuses what it does not know. Imports Beam."""

import argparse
import json
import re
from collections.abc import Mapping, Sequence
from typing import NoReturn

from apache_beam.options.pipeline_options import PipelineOptions, _BeamArgumentParser

from gapless_pipelines.findings import Problem, closest

_OPTION = re.compile(r"--?[A-Za-z]")
_ANY_OPTION = "a pipeline option of Apache Beam, by its name"


def flags_from_mapping(options: Mapping[str, object]) -> tuple[list[str], list[Problem]]:
    """Flags from option names and JSON values, as a job file writes them, and what Beam would not take."""
    parser = _Parser()
    flags: list[str] = []
    problems: list[Problem] = []
    for name, value in options.items():
        try:
            written = parser.flags_for(name, value)
            parser.check(written)
        except _NotTaken as refusal:
            problems.append(Problem(name, refusal.what, refusal.allowed))
        else:
            flags.extend(written)
    return flags, problems


def problems_of_arguments(arguments: Sequence[str]) -> list[Problem]:
    """What Beam would not take, or silently drop, of a command line."""
    parser = _Parser()
    problems = []
    for group in _by_option(arguments):
        try:
            parser.check(group)
        except _NotTaken as refusal:
            problems.append(Problem(group[0].split("=", 1)[0], refusal.what, refusal.allowed))
    return problems


def settings_of(flags: Sequence[str]) -> Mapping[str, object]:
    """What flags that were found good set, by Beam's name for each; with Beam's defaults."""
    return vars(_Parser().parse_known_args(list(flags))[0])


class _NotTaken(Exception):
    def __init__(self, what: str, allowed: str) -> None:
        super().__init__(what, allowed)
        self.what = what
        self.allowed = allowed


class _Parser(_BeamArgumentParser):
    """The options of every options class Beam knows of; it raises where Beam's own ends the program."""

    def __init__(self) -> None:
        super().__init__(allow_abbrev=False, add_help=False)
        for options in PipelineOptions.__subclasses__():
            options._add_argparse_args(self)
        self._by_flag = {flag: action for action in self._actions for flag in action.option_strings}

    def error(self, message: str) -> NoReturn:
        raise _NotTaken(message.partition(": ")[2] or message, "a value that Beam takes")

    def check(self, flags: Sequence[str]) -> None:
        """Parse the words of one option, on their own. Raises _NotTaken."""
        if not flags:
            return
        name, _, value = flags[0].partition("=")
        action = self._by_flag.get(name)
        if action is None:
            raise self._unknown(name)
        value = value or " ".join(flags[1:])
        if action.choices is not None and value not in action.choices:
            raise _NotTaken(f"`{value}` is none of its values", ", ".join(map(str, action.choices)))
        if action.nargs == 0 and (len(flags) > 1 or "=" in flags[0]):
            raise _NotTaken("takes no value", f"`{name}` alone")
        unknown = self.parse_known_args(list(flags))[1]
        if unknown:
            raise _NotTaken(f"`{unknown[0]}` belongs to no option", "one value, with = or a space")

    def flags_for(self, name: str, value: object) -> list[str]:
        """The flags that set an option, named as its flag or Beam's attribute, to a JSON value.

        Raises _NotTaken."""
        action = self._by_flag.get(f"--{name}") or self._by_attribute(name)
        if action is None:
            raise self._unknown(name)
        if value is None:
            raise _NotTaken("is null", "a value, or leave the option out")
        if action.nargs == 0:
            return self._switch(action, name, value)
        flag = action.option_strings[0]
        if isinstance(value, list):
            if isinstance(action, argparse._StoreAction):
                raise _NotTaken("is a list", "one value")
            return [f"{flag}={_value_text(item)}" for item in value]
        return [f"{flag}={_value_text(value)}"]

    def _by_attribute(self, name: str) -> argparse.Action | None:
        return next((action for action in self._actions if action.dest == name), None)

    def _switch(self, action: argparse.Action, name: str, value: object) -> list[str]:
        if not isinstance(value, bool):
            raise _NotTaken("is a switch", "true or false")
        named_as_flag = f"--{name}" in action.option_strings
        setting = value == isinstance(action, argparse._StoreTrueAction) if named_as_flag else value
        for other in self._actions:
            sets_true = isinstance(other, argparse._StoreTrueAction)
            if other.dest == action.dest and other.nargs == 0 and sets_true == setting:
                return [other.option_strings[0]]
        if bool(action.default) == setting:
            return []
        raise _NotTaken("cannot be switched off in Beam", "true, or leave it out")

    def _unknown(self, name: str) -> _NotTaken:
        dashes = name[: len(name) - len(name.lstrip("-"))]
        names = [flag.lstrip("-") for flag in self._by_flag]
        close = closest(name.lstrip("-"), names)
        allowed = f"did you mean `{dashes}{close}`?" if close else _ANY_OPTION
        return _NotTaken("is no option of Beam's", allowed)


def _value_text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _by_option(arguments: Sequence[str]) -> list[list[str]]:
    """The words of a command line, grouped by the option they belong to."""
    groups: list[list[str]] = []
    for word in arguments:
        if _OPTION.match(word) or not groups:
            groups.append([word])
        else:
            groups[-1].append(word)
    return groups
