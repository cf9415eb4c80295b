"""The hop counts of `planner.search.distances`, against networkx on random directed graphs."""

from itertools import pairwise
from random import Random

import networkx as nx
import pytest

from planner.search.distances import FAR, FAR_LANE, Distances, unpacked
from planner.search.topology import RatedTopology


def drawn(nodes, seed):
    """Return the neighbours of each broker of a sparse directed graph, ascending."""
    random = Random(seed)
    return [
        sorted(random.sample([n for n in range(nodes) if n != node], random.choice((0, 1, 2, 3))))
        for node in range(nodes)
    ]


@pytest.mark.parametrize("seed", range(8))
def test_hop_counts_are_those_of_a_breadth_first_search(seed):
    onward = drawn(40, seed)
    graph = nx.DiGraph()
    graph.add_nodes_from(range(40))
    graph.add_edges_from((a, b) for a, others in enumerate(onward) for b in others)
    distances = Distances(onward)
    turned = Distances([sorted(graph.predecessors(node)) for node in range(40)], distances)
    for source in range(40):
        hops = nx.single_source_shortest_path_length(graph, source)
        assert distances.rows()[source] == [hops.get(node, FAR) for node in range(40)]
        hops = nx.single_source_shortest_path_length(graph.reverse(), source)
        assert turned.rows()[source] == [hops.get(node, FAR) for node in range(40)]


@pytest.mark.parametrize("seed", range(30))
def test_hop_counts_of_trees_are_those_of_a_breadth_first_search(seed):
    """Also where links go one way alone, and where the trees are several."""
    random = Random(seed)
    graph = nx.DiGraph()
    graph.add_nodes_from(range(40))
    for node in range(1, 40):
        if random.random() < 0.9:
            ends = (node, random.randrange(max(0, node - 5), node))
            ways = random.choice(([ends], [ends[::-1]], [ends, ends[::-1]], [ends, ends[::-1]]))
            graph.add_edges_from(ways)
    onward = [sorted(graph[node]) for node in range(40)]
    topology = RatedTopology(onward, 4)
    assert topology.is_forest
    for source in range(40):
        hops = nx.single_source_shortest_path_length(graph, source)
        assert topology.hops_from(source) == [hops.get(node, FAR) for node in range(40)]
        reached = tuple(sorted(random.sample(sorted(hops), min(len(hops), 4))))
        ends = tuple(end for end in reached if end != source)
        ways = [nx.shortest_path(graph, source, end) for end in ends]
        least = {arc for way in ways for arc in pairwise(way)}
        assert topology.tree(source, ends) == tuple(sorted(least))


def test_a_graph_with_a_way_around_is_no_forest():
    ring = [[1, 2], [0, 2], [0, 1]]
    assert not RatedTopology(ring, 4).is_forest
    assert not RatedTopology([[1], [2], [0], []], 4).is_forest  # one way round alone


def test_a_sum_of_lanes_is_the_weighted_sum_of_the_hop_counts():
    """What no path reaches counts as FAR_LANE, so that lanes never overflow."""
    distances = Distances([[1], [2], [0], []])
    total = 3 * distances.lanes(0) + 5 * distances.lanes(2)
    assert unpacked(total, 4) == [3 * 0 + 5 * 1, 3 * 1 + 5 * 2, 3 * 2 + 5 * 0, 8 * FAR_LANE]


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("joined", [True, False])
def test_the_nearest_of_several_sources_is_that_of_each_row(seed, joined):
    """What no path reaches is FAR_LANE away, and what is added to all is added to it as well."""
    random = Random(seed)
    graph = nx.connected_watts_strogatz_graph(60, 4, 0.3, seed=seed)
    onward = [sorted(graph[node]) for node in range(60)]
    if not joined:
        onward = [[other for other in others if other % 7] for others in onward]
    distances = Distances(onward)
    sources = random.sample(range(60), 6)
    rows = distances.rows()
    least = [min(rows[source][node] for source in sources) for node in range(60)]
    expected = [min(hops, FAR_LANE) + 3 for hops in least]
    assert unpacked(distances.nearest(sources, 3), 60) == expected


@pytest.mark.parametrize("seed", range(8))
def test_a_tree_joins_all_ends_by_links_that_are_there_and_every_leaf_is_an_end(seed):
    random = Random(seed)
    graph = nx.connected_watts_strogatz_graph(60, 4, 0.3, seed=seed)
    topology = RatedTopology([sorted(graph[node]) for node in range(60)], 1)
    source, *ends = random.sample(range(60), 8)
    arcs = topology.tree(source, tuple(sorted(ends)))
    tree = nx.DiGraph(arcs)
    assert nx.is_arborescence(tree)
    assert all(graph.has_edge(a, b) for a, b in arcs)
    assert [node for node in tree if tree.in_degree(node) == 0] == [source]
    assert {node for node in tree if tree.out_degree(node) == 0} <= set(ends) <= set(tree)
