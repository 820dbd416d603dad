"""The engines on which the same scenarios run: what Beam is told, and what each of them needs.

local_1, local_8    `FnApiRunner`, with one worker and with eight of them in memory
direct              `DirectRunner` on a machine without the internet: Beam falls back to its local runner
direct_prism        `DirectRunner` where Beam has once downloaded Prism
prism_loopback      Prism, whose workers are threads of the submitting process
prism_external      Prism, whose worker is a process of a pool: nothing but pickled code and the network reaches it
"""

import os
import platform
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from apache_beam.version import __version__ as beam_version

NOBODY_LISTENS = "http://127.0.0.1:9"


@dataclass(frozen=True)
class Engine:
    """`runner` is what Beam's result says it was. `apart`: its workers are processes of a pool. `streams`: a reader that is
    never done may run on it."""

    name: str
    options: tuple[str, ...]
    runner: str
    prism: bool = False
    apart: bool = False

    @property
    def streams(self) -> bool:
        return "--runner=PrismRunner" in self.options

    def __str__(self) -> str:
        return self.name

    def flags(self, prism: Path | None, pool_port: int | None) -> tuple[str, ...]:
        """Beam's options. `prism` is the binary; `pool_port` that of the pool of workers."""
        given = list(self.options)
        if self.runner == "portable_runner":
            # A download that has failed would be what a later job of this process gets.
            given.append("--experiments=disable_prism_server_singleton")
        if "--runner=PrismRunner" in given:
            given.append(f"--prism_location={prism}")
        if self.apart:
            given.append(f"--environment_config=localhost:{pool_port}")
        return tuple(given)

    def environment(self, home: Path, prism: Path | None) -> Mapping[str, str]:
        """What the submitting process has in its environment; `home` is a folder of its own."""
        if self.name == "direct":
            return {**without_the_internet(), "HOME": str(home)}
        if self.name == "direct_prism":
            assert prism is not None
            downloaded(prism, home)
            return {"HOME": str(home)}
        return {}


ENGINES = (
    Engine("local_1", ("--runner=FnApiRunner", "--direct_num_workers=1"), "fn_runner"),
    Engine(
        "local_8",
        ("--runner=FnApiRunner", "--direct_num_workers=8", "--direct_running_mode=in_memory"),
        "fn_runner",
    ),
    Engine("direct", ("--runner=DirectRunner",), "fn_runner"),
    Engine("direct_prism", ("--runner=DirectRunner",), "portable_runner", prism=True),
    Engine(
        "prism_loopback",
        ("--runner=PrismRunner", "--environment_type=LOOPBACK"),
        "portable_runner",
        prism=True,
    ),
    Engine(
        "prism_external",
        ("--runner=PrismRunner", "--environment_type=EXTERNAL"),
        "portable_runner",
        prism=True,
        apart=True,
    ),
)
BY_NAME = {engine.name: engine for engine in ENGINES}


def without_the_internet() -> dict[str, str]:
    """Everything but this machine is out of reach."""
    return {
        "https_proxy": NOBODY_LISTENS,
        "http_proxy": NOBODY_LISTENS,
        "no_proxy": "localhost,127.0.0.1",
    }


def downloaded(prism: Path, home: Path) -> None:
    """Put Prism where Beam keeps what it has downloaded, for a user whose home that is."""
    machine = {"x86_64": "amd64", "aarch64": "arm64", "arm64": "arm64"}[platform.machine()]
    folder = home / ".apache_beam" / "cache" / "prism" / "bin"
    folder.mkdir(parents=True, exist_ok=True)
    link = folder / f"apache_beam-v{beam_version}-prism-{platform.system().lower()}-{machine}.zip"
    if not link.exists():
        link.symlink_to(prism)


def prism_binary() -> Path | str:
    """Prism's binary, from PRISM; else the reason why there is none."""
    given = os.environ.get("PRISM", "")
    if given and os.access(given, os.X_OK):
        return Path(given)
    return f"PRISM={given!r} is no program" if given else "PRISM does not say where Prism's binary is"
