"""Retrieval quality on question sets: `make quality`."""
