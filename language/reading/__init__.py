"""From text to tree.

Owns the parser and the actions that build the tree. Must not know what names stand for: whether a
tree means something is the checker's part. Invariant: no text makes it raise, and lark is imported
only when a text is read.
"""
