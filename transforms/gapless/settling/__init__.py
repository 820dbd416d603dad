"""One chain taken, read from its durable row on, and either applied and promoted in the same call or emitted for a pipeline to
settle. No Beam in here."""
