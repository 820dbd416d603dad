"""The same read with Airbyte's low-code CDK, records as JSON lines as its protocol has them, in an environment of its own
(`pip install airbyte-cdk`). argv: URL FOLDER"""

import json
import logging
import sys
from urllib.request import urlopen

import orjson
from airbyte_cdk.models import (
    ConfiguredAirbyteCatalog,
    ConfiguredAirbyteStream,
    DestinationSyncMode,
    SyncMode,
    Type,
)
from airbyte_cdk.sources.declarative.concurrent_declarative_source import ConcurrentDeclarativeSource

base, folder = sys.argv[1:3]
names = json.load(urlopen(f"{base}/partitions"))["partitions"]
stream = {
    "type": "DeclarativeStream",
    "name": "events",
    "primary_key": ["id"],
    "schema_loader": {
        "type": "InlineSchemaLoader",
        "schema": {
            "type": "object",
            "properties": {"id": {"type": "string"}, "position": {"type": "integer"}},
        },
    },
    "retriever": {
        "type": "SimpleRetriever",
        "requester": {
            "type": "HttpRequester",
            "url_base": base,
            "path": "/partitions/{{ stream_partition.partition }}/events",
            "http_method": "GET",
        },
        "record_selector": {
            "type": "RecordSelector",
            "extractor": {"type": "DpathExtractor", "field_path": ["events"]},
        },
        "paginator": {
            "type": "DefaultPaginator",
            "page_token_option": {
                "type": "RequestOption",
                "inject_into": "request_parameter",
                "field_name": "cursor",
            },
            "pagination_strategy": {
                "type": "CursorPagination",
                "cursor_value": "{{ response.next_cursor }}",
                "stop_condition": "{{ not response.next_cursor }}",
            },
        },
        "partition_router": {"type": "ListPartitionRouter", "values": names, "cursor_field": "partition"},
    },
}
manifest = {
    "version": "6.0.0",
    "type": "DeclarativeSource",
    "check": {"type": "CheckStream", "stream_names": ["events"]},
    "streams": [stream],
}
log = logging.getLogger("airbyte")
log.setLevel(logging.ERROR)


def source(catalog):
    return ConcurrentDeclarativeSource(catalog=catalog, config={}, state=[], source_config=manifest)


streams = source(ConfiguredAirbyteCatalog(streams=[])).discover(log, {}).streams
catalog = ConfiguredAirbyteCatalog(
    streams=[
        ConfiguredAirbyteStream(
            stream=one, sync_mode=SyncMode.full_refresh, destination_sync_mode=DestinationSyncMode.append
        )
        for one in streams
    ]
)
with open(f"{folder}/events.jsonl", "wb") as out:
    for message in source(catalog).read(log, {}, catalog, []):
        if message.type == Type.RECORD:
            out.write(orjson.dumps(message.record.data) + b"\n")
