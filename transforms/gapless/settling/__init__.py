"""Settling in place: one chain is taken, read, applied and promoted in one call, by its durable row. No Beam in here."""
