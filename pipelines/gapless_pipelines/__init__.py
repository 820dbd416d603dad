"""What runs jobs: the job file, the command line, backfill and stream with their local passes, Dataflow templates, Beam YAML, the demo."""
