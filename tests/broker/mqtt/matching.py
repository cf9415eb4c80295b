"""What a topic filter matches, slowly and straight from section 4.7: the oracle of these tests.

It shares nothing with the code under test: no tree, no splitting ahead, one level at a time.
"""


def filter_matches(topic_filter: str, topic: str) -> bool:
    """Whether the filter matches the topic name."""
    first_of_filter, first_of_topic = topic_filter[0:1], topic[0:1]
    if first_of_topic == "$" and first_of_filter in ("+", "#"):
        return False
    return _rest_matches(topic_filter, topic)


def _rest_matches(topic_filter: str | None, topic: str | None) -> bool:
    """The levels that are left of both; None where none is left."""
    if topic_filter is None:
        return topic is None
    level, others = _first(topic_filter)
    if level == "#":
        return True  # the parent level too, which is why it comes before the next question
    if topic is None:
        return False
    name, names = _first(topic)
    if level not in (name, "+"):
        return False
    if names is None and others == "#":
        return True
    return _rest_matches(others, names)


def _first(text: str) -> tuple[str, str | None]:
    at = text.find("/")
    return (text, None) if at < 0 else (text[:at], text[at + 1 :])
