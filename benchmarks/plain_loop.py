"""What a user would write by hand: fetch, decode, write Parquet, page after page; no bookkeeping, no proof. argv: URL FOLDER"""

import os
import sys

import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import requests

base, folder = sys.argv[1:3]
session = requests.Session()
for partition in orjson.loads(session.get(f"{base}/partitions").content)["partitions"]:
    os.makedirs(f"{folder}/partition={partition}", exist_ok=True)
    cursor, number = None, 0
    while number == 0 or cursor is not None:
        params = {} if cursor is None else {"cursor": cursor}
        page = orjson.loads(session.get(f"{base}/partitions/{partition}/events", params=params).content)
        pq.write_table(
            pa.Table.from_pylist(page["events"]), f"{folder}/partition={partition}/{number:06d}.parquet"
        )
        cursor, number = page["next_cursor"], number + 1
