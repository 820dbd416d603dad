"""A worker in a process of its own, which is given a pickled graph and nothing else. Run with the file of the graph:

python graph_process.py GRAPH
"""

import sys
from pathlib import Path

import apache_beam as beam
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.portability.api import beam_runner_api_pb2
from apache_beam.runners.portability.fn_api_runner import FnApiRunner
from apache_beam.transforms.environments import EmbeddedPythonEnvironment


def written(transform: beam.PTransform, path: Path) -> Path:
    """The graph of a pipeline of this one transform, as it would travel."""
    pipeline = beam.Pipeline(FnApiRunner())
    _ = pipeline | transform
    proto = pipeline.to_runner_api(default_environment=EmbeddedPythonEnvironment.default())
    path.write_bytes(proto.SerializeToString())
    return path


def main() -> None:
    proto = beam_runner_api_pb2.Pipeline.FromString(Path(sys.argv[1]).read_bytes())
    FnApiRunner().run_via_runner_api(proto, PipelineOptions()).wait_until_finish()


if __name__ == "__main__":
    main()
