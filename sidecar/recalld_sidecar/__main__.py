"""`python -m recalld_sidecar` is the `recalld` command."""

from recalld_sidecar.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
