"""Entry point of the Flex Template `backfill`: FLEX_TEMPLATE_PYTHON_PY_FILE of its image.

Takes the parameters of metadata.json, and pipeline options of Beam."""

from gapless_pipelines.flex_templates.launching import launch

if __name__ == "__main__":
    raise SystemExit(launch("backfill"))
