"""The command line: `gapless COMMAND`.

    app               the commands, assembled                                  main
    arguments         what every command takes: job file, --store, --scope, --json, --debug
    meaning           which scope of which store is meant
    failures          errors as three lines, and their exit status
    printing          JSON on standard output, everything else on standard error; wording: what values are called there
    *_command         one command each: its words, and what it prints; tables: partitions on a terminal
    checking          what `check` finds out
    backfill_display  what is seen while a backfill runs, by what run_progress counts; stopping: Ctrl-C and SIGTERM
    leaving           how the process ends after an engine of other processes
    deferred          effects that are imported when they are opened
    logs              what libraries log and warn, kept off the terminal

Commands that only read import neither Beam, Arrow nor an HTTP client. Modules import what is heavy where they use it.
"""

from gapless_pipelines.cli.app import main

__all__ = ["main"]
