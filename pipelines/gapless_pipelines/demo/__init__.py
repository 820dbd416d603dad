"""The demo: a year of real departures behind a paginated API, a backfill that is killed half-way, and what is left of it.

flights      the data: the 336,776 departures of 2013, in order, as the API sends them
flights_api  what the API answers: pages, tokens, certificates, and its faults (no sockets)
server       the API as a process of its own on loopback; client and requests served
job_file     the job file that is run
scene        what every run of the demo needs: folder, server, commands, the store as it stands
checks       what the files and the frontier must equal, counted from the data itself
interrupted  the demo: kill, resume, compare
broken       the demo with `--break`: one event fails, its partition is held, `skip` releases it
"""
