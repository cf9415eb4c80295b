"""Who is told what: words travel from neighbour to neighbour, no farther than their scope.

Owns this choice and who follows this broker from beyond. Must not know what follows from a word.
Invariant: on a tree each broker in scope of a word gets it once, from the side of who said it; as a
span and all within so many hops of it hang together, nobody out of scope has to pass a word on.
"""

from __future__ import annotations

import msgspec

from broker.core.coordinator.around import Around
from broker.core.coordinator.known import Known
from broker.core.coordinator.scope import Geography, TreeSpan
from broker.core.coordinator.statement import (
    BrokerWord,
    Enclosed,
    HostingWord,
    Measured,
    Submission,
    Turned,
    Withdrawn,
    Word,
    encoded,
)


class Dissemination:
    """Pass words on; `followers` look farther than usual and hear of all whose span is here."""

    def __init__(self, me: str, around: Around, known: Known) -> None:
        self.me = me
        self.followers: dict[str, None] = {}
        self._around = around
        self._known = known
        self._geography: Geography | None = None

    @property
    def geography(self) -> Geography:
        """The ways on the tree of now."""
        overlay = self._around.overlay()
        if self._geography is None or self._geography.overlay is not overlay:
            self._geography = Geography(overlay)
        return self._geography

    def span(self, word: Submission) -> TreeSpan | None:
        """Return the span of a submission by its last word."""
        return self.geography.span(word.points)

    def greet(self, peer: str) -> None:
        """A session stands with a neighbour: it is told all in whose scope it is."""
        for word in self._known.brokers.values():
            if word.hops and self._is_away(word.broker, peer):
                self._say(peer, msgspec.structs.replace(word, hops=word.hops - 1))
        for submission in self._known.submissions.values():
            span = self.span(submission)
            is_near = span is not None and span.hops_of(peer) <= submission.scope
            if is_near and self._is_away(submission.home, peer):
                self._say(peer, submission)

    def _is_away(self, broker: str, peer: str) -> bool:
        return broker == self.me or self._around.via(broker) != peer

    def pass_broker(self, word: BrokerWord, but: str = "") -> None:
        """Tell the others what a broker says of itself."""
        if word.hops:
            self._say_all(msgspec.structs.replace(word, hops=word.hops - 1), but)
        if word.broker == self.me:
            for follower in self.followers:
                self.enclose(follower, word)

    def pass_submission(
        self, word: Submission | Withdrawn, before: Submission | None, but: str = ""
    ) -> None:
        """Tell those in whose view a submission is, or was by the word `before`."""
        states = [state for state in (word, before) if isinstance(state, Submission)]
        spans = [(self.span(state), state.scope) for state in states]
        reached = [(span, scope) for span, scope in spans if span is not None]
        for peer in self._around.peers():
            if peer != but and any(span.hops_of(peer) <= scope for span, scope in reached):
                self._say(peer, word)
        if any(not span.hops for span, _ in reached):
            for follower in self.followers:
                self.enclose(follower, word)

    def follow(self, follower: str) -> None:
        """Another looks as far as here: it is told all whose span is here, from now on.

        It is told of the brokers beside this one as well, as it may have to look farther still.
        """
        self.followers[follower] = None
        for name in (self.me, *self.geography.overlay.neighbours):
            if name in self._known.brokers:
                self.enclose(follower, self._known.brokers[name])
        for word in self._known.submissions.values():
            span = self.span(word)
            if span is not None and not span.hops:
                self.enclose(follower, word)

    def enclose(self, to: str, word: BrokerWord | Submission | Withdrawn) -> None:
        """Tell one broker, however far away."""
        if isinstance(word, BrokerWord):
            word = msgspec.structs.replace(word, hops=0)
        self.send(to, Enclosed(to, encoded(word)))

    def send(self, to: str, word: Enclosed | Measured | HostingWord | Turned) -> None:
        """Send a word that names its reader on its way."""
        via = self._around.via(to)
        if via is not None:
            self._say(via, word)

    def relay(self, peer: str, to: str, data: bytes) -> None:
        """Send on what a neighbour has sent for another broker."""
        via = self._around.via(to)
        if via is not None and via != peer:
            self._around.say(via, data)

    def keeps(self, word: Submission, reach: int) -> bool:
        """Tell whether this broker is in scope of a submission, or looks as far as its span."""
        span = self.span(word)
        return span is not None and span.hops <= max(word.scope, reach)

    def _say(self, peer: str, word: Word) -> None:
        self._around.say(peer, encoded(word))

    def _say_all(self, word: Word, but: str) -> None:
        data = encoded(word)
        for peer in self._around.peers():
            if peer != but:
                self._around.say(peer, data)
