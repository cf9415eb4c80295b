"""The operators one by one: each takes what those beneath it decided, and decides further.

Owns joins of two sides (`join` writes them, `joint` runs them), runs under `first` and `latest`
(`course`), pairs under `chronicle`, lists (`gathered`), repetition (`repeats`), `nth` and
`distinct` (`pick`), `without` (`negation`), `absent` (`silence`, and `silence_weighed` where times
are uncertain), and the choice of one for each operand (`build`).

Must not know groups, subscriptions, or which whole occurrences are reported.

Invariant: an operator reads of those beneath only what a `Stage` promises, so any stands over any.

The way through: `build.Builder` compiles each operand once and returns what makes its stage, which
is done anew for every group; from then on `advance` is called from the root down.
"""
