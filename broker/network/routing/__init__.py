"""Who hears of what over the overlay tree: what a broker can know of all others at once.

Owns the probes by which a broker learns that every broker that it can reach has heard all that it
said before. Must not know what was said, nor events, journals or clocks.

Invariant: an echo is said by a broker only behind its own answers to what came before the probe,
and behind the echoes of all brokers beyond it; links keep the order of what they bring. So where an
echo has come, every answer has.

The way through it: a broker begins a probe; each broker passes it on to its other neighbours in the
tree; one that has none echoes at once, and each other one when all of its neighbours have echoed.
This is the echo algorithm (a wave out and a convergecast back), with numbers in place of one wave
at a time: an echo stands for all probes up to its number. A neighbour whose session ended has heard
nothing and is asked anew in the next; one that is no neighbour in the tree any more is not waited
for. A process that has just begun waits besides until its links are up, or had their time.

    begun ──▶ asked of all neighbours ──▶ echoed by all ──▶ answered
                  ▲                │
                  └── session ended┘
"""
