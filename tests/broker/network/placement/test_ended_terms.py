"""A host hears that a term is over, be the way to it there or not when the home finds that out."""

from hypothesis import given
from hypothesis import strategies as st

from broker.network.placement import homes
from broker.network.placement.cell_messages import Ended, Which
from broker.network.placement.homes import EndedTerms

HOSTS = ["b1", "b2"]
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("end"), st.sampled_from(HOSTS), st.integers(1, 5)),
        st.tuples(st.just("lose"), st.sampled_from(HOSTS), st.just(0)),
        st.tuples(st.just("find"), st.sampled_from(HOSTS), st.just(0)),
    )
)


@given(STEPS)
def test_every_host_hears_of_every_term_once_there_is_a_way(steps):
    away, heard, ended = dict.fromkeys(HOSTS), {host: [] for host in HOSTS}, set()

    def tell(host, said):
        assert host not in away, "it would be lost"
        heard[host].append(said)

    over = EndedTerms(lambda host: host in away, tell)
    for what, host, number in steps:
        if what == "end":
            over.end(host, Which("b0/1", 7, number))
            ended.add((host, number))
        elif what == "lose":
            away[host] = None
        else:
            away.pop(host, None)
            over.found(host)
    for host in HOSTS:
        away.pop(host, None)
        over.found(host)
        over.found(host)
    told = {(host, said.which.term) for host in HOSTS for said in heard[host]}
    assert told == ended
    assert all(isinstance(said, Ended) for said in heard["b1"])
    assert len(heard["b1"]) <= sum(what == "end" for what, *_ in steps)


def test_of_too_many_terms_the_latest_are_told(monkeypatch):
    monkeypatch.setattr(homes, "UNHEARD_MAX", 3)
    heard = []
    over = EndedTerms(lambda _: True, lambda _, said: heard.append(said.which.term))
    for number in range(5):
        over.end("b1", Which("b0/1", 7, number))
    over.found("b1")
    assert heard == [2, 3, 4]
