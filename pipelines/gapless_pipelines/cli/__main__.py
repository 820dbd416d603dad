"""`python -m gapless_pipelines.cli` is `gapless`."""

from gapless_pipelines.cli import main

if __name__ == "__main__":
    main()
