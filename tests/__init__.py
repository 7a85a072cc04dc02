"""Everything that `make test` runs."""
