"""What runs jobs: job file, command line, backfill and stream with their local passes, Dataflow templates, Beam YAML, demo."""
