"""From tree to text: the canonical form.

Owns the one way in which each tree is written. Must not know whether it means something.
Invariant: reading what was written gives the same tree.

    tree ─▶ items (declarations, definitions, subscriptions) ─▶ patterns ─▶ expressions ─▶ text
    text with comments ─▶ formatter ─▶ the same, each comment beside what it stood beside
"""
