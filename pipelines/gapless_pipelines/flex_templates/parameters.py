"""What the launch of a template may say. The one list: entry points take these, and `metadata.json` is made of them."""

from dataclasses import dataclass

BACKFILL = "backfill"
STREAM = "stream"
DELIVERY = "delivery"
TEMPLATES = (BACKFILL, STREAM, DELIVERY)

_JOB = "Job"
_FILES = "Files"
_LAUNCH = "Launch"


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter. `kind` is Dataflow's ParameterType; `regex` has to match a value as a whole.

    `default` None: nothing is assumed. `templates` are those that have it. `local` is what an entry point takes besides where
    it is started by hand, on a machine whose files it sees."""

    name: str
    label: str
    help: str
    group: str
    kind: str
    regex: str
    example: str
    required: bool = False
    default: str | None = None
    templates: tuple[str, ...] = TEMPLATES
    local: str | None = None


JOB_FILE = Parameter(
    name="job_file",
    label="Job file",
    help=(
        "The job file in object storage. Paths in it are absolute: a file that is read from there has no folder. "
        "Secrets are references, which the workers look up."
    ),
    group=_JOB,
    kind="GCS_READ_FILE",
    regex=r"^gs://[^/\n\r]+/[^\n\r]+$",
    example="gs://my-bucket/jobs/orders.yaml",
    required=True,
    local=r"^/[^\n\r]+$",
)
VARIABLES = Parameter(
    name="variables",
    label="Variables of the job file",
    help=(
        "A JSON object of texts: what ${NAME} in the job file refers to, before the launcher's environment. "
        "Never a secret: parameters are shown with the job."
    ),
    group=_JOB,
    kind="TEXT",
    regex=r"^\s*\{[\s\S]*\}\s*$",
    example='{"ORDERS_URL": "https://orders.example"}',
    default="{}",
)
SHARED_FOLDER = Parameter(
    name="shared_folder",
    label="Folder that all workers share",
    help=(
        "Your word that this absolute folder is one and the same durable folder on every worker. Files of the effect and of "
        "dead letters must lie in it. Without it, a job that writes files is refused where workers are on other machines."
    ),
    group=_FILES,
    kind="TEXT",
    regex=r"^(/[^/\n\r]+)+$",
    example="/mnt/gapless",
    templates=(BACKFILL, STREAM),
)
CHECK_ONLY = Parameter(
    name="check_only",
    label="Check only",
    help="true: check job file, parameters and options, say what would be submitted, and submit nothing.",
    group=_LAUNCH,
    kind="BOOLEAN",
    regex=r"^(true|false)$",
    example="true",
    default="false",
)
IMAGE = Parameter(
    name="sdk_container_image",
    label="Image of the workers",
    help="The template's own image, by tag or digest. It is known where the image was built with IMAGE.",
    group=_LAUNCH,
    kind="TEXT",
    regex=r"^[a-z0-9][a-z0-9._:-]*(/[A-Za-z0-9._-]+)+(:[A-Za-z0-9._-]+)?(@sha256:[0-9a-f]{64})?$",
    example="europe-west1-docker.pkg.dev/my-project/gapless/backfill:0.1.0",
)
_ALL = (JOB_FILE, VARIABLES, SHARED_FOLDER, CHECK_ONLY, IMAGE)


def parameters_of(template: str) -> tuple[Parameter, ...]:
    """Those of one template, in the order in which they are shown.

    >>> [parameter.name for parameter in parameters_of("delivery")]
    ['job_file', 'variables', 'check_only', 'sdk_container_image']
    """
    return tuple(parameter for parameter in _ALL if template in parameter.templates)
