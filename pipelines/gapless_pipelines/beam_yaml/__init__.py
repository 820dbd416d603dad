"""Transforms for Beam YAML, by the provider list `templates/yaml/providers.yaml`: what a job file says, with outputs of rows.

read_complete        partitions read, applied and proved complete       ReadComplete
delivery_frontier    where the shards of a message log stand            DeliveryFrontier
yaml_job             the job of a transform's config: a file, or written out there
rows                 what the rows hold: positions are text, since they may be longer than Beam's integers
"""

from gapless_pipelines.beam_yaml.delivery_frontier import DeliveryFrontier
from gapless_pipelines.beam_yaml.read_complete import ReadComplete

__all__ = ["DeliveryFrontier", "ReadComplete"]
