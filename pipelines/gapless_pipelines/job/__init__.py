"""Job files: strict YAML, checked whole before anything is written.

loading        a file becomes a Job, or every finding at once        load_job, store_of, find_job_file
document       YAML with JSON's scalars and the line of every value; variables: ${NAME}
models         what a file may say, key by key; basics is the part reading commands need
validation     from pydantic's errors to findings; checks: what no single key can tell
job            what a run is made of                                 Job
placement      folders that workers on other machines would not share
schema         the JSON Schemas, and a commented example
"""

from gapless_pipelines.findings import Finding, InvalidConfiguration
from gapless_pipelines.job.job import Job
from gapless_pipelines.job.loading import find_job_file, load_job, store_of
from gapless_pipelines.job.scope_store import ScopeStore

__all__ = [
    "Finding",
    "InvalidConfiguration",
    "Job",
    "ScopeStore",
    "find_job_file",
    "load_job",
    "store_of",
]
