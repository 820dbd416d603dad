"""Durable progress: the store's rows, and the compare-and-swaps by which they change. SQLite or PostgreSQL."""

from gapless.store.store import Store, open_store

__all__ = ["Store", "open_store"]
