"""The words of a launch: what they mean, and what they cannot mean."""

import pytest

from gapless_pipelines.findings import InvalidConfiguration
from gapless_pipelines.flex_templates.parameters import BACKFILL, DELIVERY
from gapless_pipelines.flex_templates.settings import settings_of

JOB = "--job_file=gs://bucket/orders.yaml"


def test_what_belongs_to_beam_is_left_in_its_order() -> None:
    found = settings_of(
        BACKFILL, ["--runner=DataflowRunner", JOB, "--region", "europe-west1", "--streaming"], {}
    )
    assert found.arguments == ("--runner=DataflowRunner", "--region", "europe-west1", "--streaming")
    assert found.job_file == "gs://bucket/orders.yaml"


def test_a_value_may_stand_behind_its_name_and_the_last_one_counts() -> None:
    found = settings_of(BACKFILL, [JOB, "--job_file", "/jobs/other.yaml", "--check_only", "true"], {})
    assert (found.job_file, found.check_only) == ("/jobs/other.yaml", True)


def test_a_parameter_that_is_left_empty_is_not_given() -> None:
    found = settings_of(BACKFILL, [JOB, "--shared_folder=", "--variables", "--check_only="], {})
    assert (found.shared_folder, dict(found.variables), found.check_only) == (None, {}, False)


def test_where_dataflow_wants_the_graph_is_no_option_of_the_job() -> None:
    found = settings_of(DELIVERY, [JOB, "--template_location=gs://staging/job_object"], {})
    assert (found.graph_location, found.arguments) == ("gs://staging/job_object", ())


def test_the_image_is_what_the_launch_says_or_else_its_own_name() -> None:
    own = {"GAPLESS_TEMPLATE_IMAGE": "registry/own:1"}
    other = "--sdk_container_image=registry/other:2"
    assert settings_of(BACKFILL, [JOB], own).arguments == ("--sdk_container_image=registry/own:1",)
    assert settings_of(BACKFILL, [JOB, other], own).arguments == (other,)
    assert settings_of(BACKFILL, [JOB], {"GAPLESS_TEMPLATE_IMAGE": ""}).arguments == ()


def test_every_problem_is_told_at_once_and_no_variable_is_repeated() -> None:
    words = ['--variables={"TOKEN": 7, "X": "s3cret"}', "--check_only=maybe", "--shared_folder=here"]
    with pytest.raises(InvalidConfiguration) as caught:
        settings_of(BACKFILL, words, {})
    assert str(caught.value).splitlines() == [
        "parameters: job_file: is missing; such as gs://my-bucket/jobs/orders.yaml",
        "parameters: shared_folder: cannot be `here`; such as /mnt/gapless",
        "parameters: check_only: cannot be `maybe`; such as true",
        'parameters: variables: is no JSON object of texts; such as {"ORDERS_URL": "https://orders.example"}',
    ]
    assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize("text", ['{"not a name": "x"}', '{"A": null}', '{"A": ["x"]}', "{A: x}", '{"A": 1}'])
def test_variables_are_names_with_texts(text: str) -> None:
    with pytest.raises(InvalidConfiguration, match="variables: is no JSON object of texts"):
        settings_of(BACKFILL, [JOB, f"--variables={text}"], {})
