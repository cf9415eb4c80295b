"""What joins the core to the world in a real process.

Owns the carrying out of effects, the arrival of messages, time, log lines and signals to the
supervisor. Must not decide what a broker decides. Invariant: the core is only ever called from the
event loop's thread, with a time that does not go back.
"""
