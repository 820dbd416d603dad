"""What runs jobs: the job file, the command line, the backfill with its local passes, and the demo."""
