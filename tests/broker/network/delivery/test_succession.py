"""Who is the home of a cell, once homes were taken over."""

from broker.network.delivery.succession import Succeeded, SuccessionExchange, SuccessionLog


def succession(heir, at_ms, *cells, home="hall"):
    return Succeeded(home, heir, at_ms, 0, cells, ())


def log_of(*successions):
    log = SuccessionLog()
    for message in successions:
        log.handle(message)
    return log


def test_a_cell_is_at_home_where_its_name_says_until_it_is_taken_over():
    log = log_of(succession("roof", 5, "hall/1"))
    assert log.home_of("hall/1") == log.home_of("hall/1#3") == "roof"
    assert log.home_of("hall/2") == "hall"
    assert log.heirs() == {"hall": ["roof"]}


def test_the_latest_word_counts_in_whatever_order_it_comes():
    first, second = succession("roof", 5, "hall/1"), succession("shed", 6, "hall/1", home="roof")
    assert log_of(first, second).home_of("hall/1") == "shed"
    assert log_of(second, first).home_of("hall/1") == "shed"


def test_two_words_of_one_moment_are_settled_alike_everywhere():
    one_way = succession("roof", 5, "hall/1"), succession("shed", 5, "hall/1")
    assert log_of(*one_way).home_of("hall/1") == log_of(*reversed(one_way)).home_of("hall/1")


def test_a_log_is_taken_up_as_it_was():
    log = log_of(succession("roof", 5, "hall/1"))
    again = SuccessionLog()
    again.restore(log.state())
    assert again.stated() == log.stated()
    assert again.home_of("hall/1") == "roof"
    assert again.fresh == []


def test_each_neighbour_that_understands_hears_all_once_and_again_in_a_new_session():
    said, recorded, log = [], [], SuccessionLog()

    def keep(message):
        recorded.append(message)
        log.handle(message)

    exchange = SuccessionExchange(log, lambda *what: said.append(what), keep)
    exchange.begin("new", understands=True)
    exchange.begin("old", understands=False)
    heard = succession("roof", 5, "hall/1")
    exchange.hear("new", heard)
    exchange.hear("new", heard)
    exchange.spread(["new", "old"], rests=False)
    exchange.spread(["new", "old"], rests=False)
    assert said == [("new", heard, False)]
    assert recorded == [heard]
    exchange.begin("new", understands=True)
    assert said[1:] == [("new", heard, True)]
