"""A scope's files read as one data set, and its rows as the source sent them."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow.dataset as ds

from gapless.effects.column_types import JSON
from gapless.effects.frozen_schema import RESERVED, REST, FrozenSchema


def open_dataset(paths: Sequence[str], schema: FrozenSchema) -> ds.Dataset:
    """The files, which the manifest lists, under the scope's whole schema: what a file has no column for reads as null.

    (Left to itself, pyarrow takes the schema of the first file and passes over the columns that only later ones have.)"""
    return ds.dataset(list(paths), schema=schema.arrow(), format="parquet", partitioning=None)


def source_row(record: Mapping[str, Any], schema: FrozenSchema) -> dict[str, Any]:
    """The event's data: columns and `_rest` together, without the envelope. Keys that were null or absent are left out.

    `record` is one row as `to_pylist` gives it. JSON columns are parsed; columns that were declared as times or decimals
    stay what they were declared to be."""
    row = {
        name: json.loads(value) if schema.types.get(name) == JSON else value
        for name, value in record.items()
        if value is not None and name not in RESERVED
    }
    if record.get(REST) is not None:
        row.update(json.loads(record[REST]))
    return row
