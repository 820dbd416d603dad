"""Tracking one chain whose events are settled in the pipeline. Knows no engine; only `promoter` knows the store.

log_entry        what the tracker was told, one thing after the other
parts            outcomes that come in several parts
open_attempts    pages that have come, and what was said of their events
chain_tracking   what is open of a chain, over its durable row
pace             when what is settled is promoted
promoting        from a run of settled pages to the promotion that makes it durable
explaining       what a chain waits for while pages of it are open
promoter         promotes, holds and explains, by compare-and-swap
"""
