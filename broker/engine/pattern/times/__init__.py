"""The one analysis of time: what each operand states of its occurrences, and what follows.

Owns how far apart the events of an occurrence may lie and for how long each is kept (`timing`), how
long events last (`durations`), which event completes an occurrence (`completion`), when an assigned
time can lie (`assigned`), and what an agent promises of what it will put out (`promises`).

Must not know stages, groups or stores: it says how long something matters, others keep it so long.

Invariant: no limit stated here is less than what events can need that keep to what is known of
them; one that is not known is None, never a guess.
"""
