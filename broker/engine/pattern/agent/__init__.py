"""The agent of a pattern: its operators for each group, its events, and its snapshots.

Owns the compiled case (`staged_plan`), what one group holds (`staged_partition`), the groups with
their limit, time and state (`staged_agent`), events that wait for the watermark and then until
something may come of them (`patience`), their search (`search`), the bounded store of a chain
(`chain_store`), the pattern that is one atom (`lone`), and what a changed text takes over of the
one before (`operand_states`).

Must not know who wants results, or where events come from: it is fed batches and a watermark.

Invariant: results do not depend on how events are batched, nor on which groups were left alone.

The way through: `feed` hands events to the groups they belong to, `patience` lets a group be until
an event comes that may complete something, then its operators advance, and what `choice` reports
becomes an event or a result. The states of a group:

    new ──▶ waits (its events alone) ──▶ open (operators) ──▶ idle, forgotten at the next sweep
"""
