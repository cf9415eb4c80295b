"""What brokers say to each other, and what is told by others and outlasts a process, as bytes.

Owns the table of frames and the cutting of many events into parts that a link takes (`frames`),
the messages that are written down (`told`), what links and their users tell a broker (`messages`)
and the rows of split windows (`fold_rows`). Must not know who makes of them what.

Invariant: what is read back is what was written, or it is refused with a sentence; a frame of an
earlier release is read, and one of a later release concerns nobody but its sender.

    what to say ─▶ a frame ─▶ sealed for a session ─▶ bundled ─▶ bytes ─▶ frames ─▶ what was said
"""
