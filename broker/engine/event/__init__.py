"""What is matched: events, matches made of them, and the code that reads them.

Owns the form of an event (one class for each type, attributes as slots), its identity, position and
group key, the occurrence that a pattern finds, what an agent is to those who feed it, and the
translation of the language's expressions to Python source that is compiled once for each shape.

Must not know where events come from, who wants them, or what is made of them: no room of the engine
stands below this one but the optional compiled passes (`native`).

Invariant: an event and an occurrence never change once they are made, and two of them compare the
same way in every process (`end`, `start`, then ids by code point), whatever PYTHONHASHSEED says.
"""
