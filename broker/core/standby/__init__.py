"""The copy that a stand-in has of a home, and what becomes of it when the home is taken over.

Owns the state of a home as its stand-in needs it (`home_copy`), how a home finds out what of it has
changed (`home_changes`), which copies a broker has (`copies_kept`), and how such a copy becomes a
part of a broker that takes over, or leaves one that was taken over (`adoption`). Must not know
frames, links or when something is said: that is `broker.network.delivery`.

A copy is a book of cells like the home's own, which takes in the same messages, and beside it what
a text needs to be installed once more. So a result that the copy has seen falls when it is found
again, and a cell begins from the snapshot that the copy holds. It also has the results that other
brokers have yet to take for their actors.

Invariant: a copy that has taken in all changes is what its home has on its disk: the same
subscriptions, as of the same moment, and the same cells. Whatever a broker adopts keeps its
subscriber, name, seq and time of installation, so that its results have the ids that they had.

    home: a message ──▶ `HomeChanges.of` ──▶ bytes ──▶ stand-in: `HomeCopy.take`
    a person's word: `HomeTaken` ──▶ `Adoption.adopt` ──▶ `Succeeded` ──▶ home: `Adoption.give_up`
"""
