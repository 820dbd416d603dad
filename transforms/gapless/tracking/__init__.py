"""Tracking one chain whose events are settled in the pipeline: pure of engine, clock and store.

log_entry        what the tracker was told, one thing after the other
parts            outcomes that come in several parts
chain_tracking   open pages, their outcomes, and what of it may be promoted
promoting        from a run of settled pages to the promotion that makes it durable
explaining       what a chain waits for while pages of it are open
"""
