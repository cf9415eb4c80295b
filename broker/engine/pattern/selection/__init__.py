"""Which of the whole occurrences that were found are reported, and when that is settled.

Owns `last` and `first` among occurrences (`selection`), turns, consumption and thinning (`choice`),
`collect` (`collecting`), and until when a subscription counts (`ending`).

Must not know operators or stores: it is handed occurrences, and says which of them go on.

Invariant: nothing is reported that an occurrence still to come could unsettle, and nothing is held
once none can.

    found ──▶ waits for its turn ──▶ chosen ──▶ reported     (or answered, consumed, suppressed)
"""
