"""What the Dataflow Flex Templates of `templates/` run: a job file from object storage becomes one job, or one clear error.

parameters     what a launch may say, from which each `metadata.json` is made      Parameter, parameters_of
metadata       a template's metadata as Dataflow reads it                          metadata_of
settings       the words of one launch, checked; the rest is for Beam              Settings, settings_of
jobs           the pipeline of a job: backfill, stream, delivery                   Prepared, prepare
launching      check, submit, say which job it is, return                          launch

The entry points themselves are one line each.
"""
