"""A template's entry point as its launcher runs it: a process of its own, with warnings as errors."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shown import README, blocks

ROOT = Path(__file__).parents[2]
TEMPLATES = ROOT / "templates"
STRICT = ("-W", "error", "-W", "ignore:You are using a non-supported Python version")
"""Warnings are errors, but for what the packages of Google say about Python 3.10."""


@dataclass(frozen=True, slots=True)
class Ended:
    """`document` is the JSON on standard output, None where there is nothing; `told` the lines on standard error."""

    status: int
    document: Any
    told: list[str]


def start(
    template: str,
    *words: str,
    folder: Path,
    environment: Mapping[str, str] | None = None,
    timeout: float = 120,
) -> Ended:
    """Run it to its end in `folder`."""
    ended = subprocess.run(
        [sys.executable, *STRICT, str(TEMPLATES / template / "main.py"), *words],
        cwd=folder,
        env={**os.environ, **(environment or {})},
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
    document = json.loads(ended.stdout) if ended.stdout.strip() else None
    return Ended(ended.returncode, document, ended.stderr.splitlines())


def readme_job(name: str) -> str:
    """The job file that the README shows under this name."""
    return next(block.text for block in blocks(README.read_text(encoding="utf-8")) if block.name == name)
