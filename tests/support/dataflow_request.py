"""A Dataflow job request, built by Beam's own DataflowRunner up to the moment it would be sent: nothing leaves this process."""

import base64
import binascii
import bz2
import contextlib
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

import apache_beam as beam
from apache_beam.internal.gcp import auth
from apache_beam.options.pipeline_options import GoogleCloudOptions, PipelineOptions
from apache_beam.portability import python_urns
from apache_beam.portability.api import beam_runner_api_pb2
from apache_beam.runners.dataflow.internal import apiclient

ARGUMENTS = (
    "--runner=DataflowRunner",
    "--project=project-1",
    "--region=europe-west1",
    "--job_name=gapless-test",
    "--temp_location=gs://bucket/tmp",
    "--staging_location=gs://bucket/staging",
    "--sdk_container_image=europe-docker.pkg.dev/project-1/gapless/gapless:1",
)
LIMIT = 10 * 2**20
"""Bytes: how large Dataflow lets the request of a job be."""


class NotSent(Exception):
    """Raised where the request would be sent; carries it."""

    def __init__(self, request: "Request") -> None:
        super().__init__("the job request was built, and not sent")
        self.request = request


@dataclass
class Request:
    """`job` is Dataflow's own message, `pipeline` what Dataflow is to run, `staged` the files that would be uploaded, by name."""

    job: Any
    pipeline: beam_runner_api_pb2.Pipeline
    staged: dict[str, bytes] = field(default_factory=dict)

    @property
    def kind(self) -> str:
        """`JOB_TYPE_BATCH` or `JOB_TYPE_STREAMING`."""
        return str(self.job.type_.name)

    @property
    def size(self) -> int:
        """Bytes of the request and of the largest file beside it: each is limited."""
        return max(len(type(self.job).serialize(self.job)), *map(len, self.staged.values()))

    @property
    def step_names(self) -> list[str]:
        return [one.unique_name for one in self.pipeline.components.transforms.values()]

    def texts(self) -> Iterator[tuple[str, bytes]]:
        """Everything in the request, as bytes with the place where it stands; what is packed or pickled is unpacked as well."""
        yield "job", type(self.job).serialize(self.job)
        for name, content in self.staged.items():
            yield f"staged {name}", content
        yield "pipeline", self.pipeline.SerializeToString()
        yield from unpacked("pipeline", self.pipeline)

    def do_fns(self) -> list[Any]:
        """Every DoFn as a worker unpickles it."""
        from apache_beam.internal import pickler

        found = []
        for one in self.pipeline.components.transforms.values():
            if one.spec.urn != "beam:transform:pardo:v1":
                continue
            payload = beam_runner_api_pb2.ParDoPayload.FromString(one.spec.payload)
            if payload.do_fn.urn == python_urns.PICKLED_DOFN_INFO:
                found.append(pickler.loads(payload.do_fn.payload)[0])
        return found


def build_request(build: Callable[[beam.Pipeline], object], *arguments: str) -> Request:
    """The request of the pipeline that `build` makes, under `ARGUMENTS` and further ones of Beam's."""
    with nothing_is_sent():
        pipeline = beam.Pipeline(options=PipelineOptions([*ARGUMENTS, *arguments]))
        build(pipeline)
        try:
            pipeline.run()
        except NotSent as built:
            return built.request
    raise AssertionError("the runner ended without a request")


@contextlib.contextmanager
def nothing_is_sent() -> Iterator[None]:
    """What DataflowRunner would upload is kept, and instead of sending a request it raises NotSent."""
    staged: dict[str, bytes] = {}

    def stage(client: Any, location: str, name: str, stream: Any, *more: Any, **options: Any) -> None:
        staged[name] = Path(stream).read_bytes() if isinstance(stream, str) else _content(stream)

    def submit(client: Any, job: Any) -> None:
        raise NotSent(Request(job.proto, job.proto_pipeline, dict(staged)))

    with contextlib.ExitStack() as stack:
        for owner, name, replacement in (
            (apiclient.DataflowApplicationClient, "stage_file_with_retry", stage),
            (apiclient.DataflowApplicationClient, "submit_job_description", submit),
            (auth, "get_service_credentials", lambda options: None),
            (apiclient, "get_service_credentials", lambda options: None),
            # Asks Cloud Storage about the buckets.
            (GoogleCloudOptions, "_warn_if_soft_delete_policy_enabled", lambda *given: None),
        ):
            stack.enter_context(mock.patch.object(owner, name, replacement))
        yield


def unpacked(where: str, message: Any) -> Iterator[tuple[str, bytes]]:
    """Every bytes field of a protocol buffer, and below it what it packs: base64, compression, other messages' bytes."""
    for descriptor, value in message.ListFields():
        at = f"{where}.{descriptor.name}"
        if descriptor.type == descriptor.TYPE_MESSAGE:
            if descriptor.message_type.GetOptions().map_entry:
                for key in value:
                    if hasattr(value[key], "ListFields"):
                        yield from unpacked(f"{at}[{key}]", value[key])
            else:
                for one in value if descriptor.is_repeated else [value]:
                    yield from unpacked(at, one)
        elif descriptor.type == descriptor.TYPE_BYTES:
            for one in value if descriptor.is_repeated else [value]:
                yield at, one
                yield from _decoded(at, one)


_PAYLOADS = (
    beam_runner_api_pb2.ParDoPayload,
    beam_runner_api_pb2.CombinePayload,
    beam_runner_api_pb2.ReadPayload,
    beam_runner_api_pb2.DockerPayload,
)


def _decoded(where: str, content: bytes) -> Iterator[tuple[str, bytes]]:
    """What these bytes are packed from, however often."""
    for payload in _PAYLOADS:
        with contextlib.suppress(Exception):
            yield from unpacked(f"{where}<{payload.DESCRIPTOR.name}>", payload.FromString(content))
    # A coder's name may stand before it.
    inner = content.rpartition(b"$")[2]
    with contextlib.suppress(binascii.Error):
        inner = base64.b64decode(inner, validate=True)
    for unpack in (bz2.decompress, zlib.decompress):
        with contextlib.suppress(OSError, ValueError, zlib.error):
            plain = unpack(inner)
            yield f"{where}<{unpack.__module__}>", plain
            yield from _decoded(where, plain)


def _content(stream: Any) -> bytes:
    content = stream.read()
    return content if isinstance(content, bytes) else content.encode()
