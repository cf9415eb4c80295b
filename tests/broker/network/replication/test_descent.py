"""Lives of an origin: what two of them share is told once, and nothing else is taken for shared."""

from random import Random

from broker.network.replication.descent import LIVES_MAX, Descent


def test_a_place_of_the_life_before_is_shared_up_to_its_end_alone():
    descent = Descent()
    descent.begin(7, 0)
    descent.begin(8, 100)
    assert descent.shared(7, 90) == 90
    assert descent.shared(7, 115) == 100
    assert descent.shared(8, 115) == 115
    assert descent.shared(9, 3) is None


def test_a_disk_that_goes_back_twice_shares_no_more_than_the_least_end():
    descent = Descent()
    descent.begin(7, 0)
    descent.begin(8, 100)
    descent.begin(9, 60)
    assert descent.shared(7, 90) == 60
    assert descent.shared(8, 90) == 60


def test_state_comes_back_and_old_lives_are_let_go():
    draw = Random(1)
    descent = Descent()
    lives = [draw.getrandbits(53) | 1 for _ in range(LIVES_MAX + 10)]
    for position, life in enumerate(lives):
        descent.begin(life, position)
    again = Descent()
    again.restore(descent.life, descent.state())
    for life in lives:
        assert again.shared(life, 10**6) == descent.shared(life, 10**6)
    assert again.shared(lives[1], 5) is None


def test_what_two_disks_share_is_what_both_have_counted():
    """A slow definition: each disk is the list of what its positions mean."""
    draw = Random(5)
    for _ in range(300):
        disk: list[object] = []
        descent = Descent()
        seen: dict[int, list[object]] = {}  # by life, the longest that anybody saw of it
        copies = [(list(disk), 0, [])]
        for life in range(1, 8):
            descent.begin(life, len(disk))
            for _ in range(draw.randint(0, 6)):
                disk.append(object())
                if draw.random() < 0.3:
                    copies.append((list(disk), descent.life, descent.state()))
            seen[life] = list(disk)
            if draw.random() < 0.5:
                disk, present, ends = draw.choice(copies)
                disk = list(disk)
                descent = Descent()
                descent.restore(present, ends)
        descent.begin(8, len(disk))
        for life, meant in seen.items():
            position = draw.randint(0, len(meant))
            shared = descent.shared(life, position)
            if shared is not None:
                assert meant[:shared] == disk[:shared]
