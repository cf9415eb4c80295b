"""The tree of a network's links and the ways on it, by their definitions.

A link is (cost, low, high). It is in the tree unless lesser links join its ends already: of each
ring of links the greatest is left out. Shares nothing with the brokers, nor with their library.
"""


def joined(links, start):
    """Each name that the links lead to from `start`, with the way there."""
    ways = {start: (start,)}
    grown = True
    while grown:
        grown = False
        for _, low, high in links:
            for here, beside in ((low, high), (high, low)):
                if here in ways and beside not in ways:
                    ways[beside] = (*ways[here], beside)
                    grown = True
    return ways


def least(links):
    """The links of the tree, or where not all is joined, of the trees."""
    lesser = {link: [other for other in links if other < link] for link in links}
    return {link for link in links if link[2] not in joined(lesser[link], link[1])}
