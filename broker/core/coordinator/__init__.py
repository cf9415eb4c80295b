"""The brokers decide by themselves where each submission's tasks run, following the load.

Owns what brokers tell each other of tasks and rates, and the driving of the planning rounds
(`planner.rounds`). Must not know sockets, clocks, nor how a task is moved: `place` says where one
is to run. Invariant: of each submission its home alone decides where it runs; the rounds agree on
what the home is to decide. What a broker keeps and is told grows with its vicinity alone.

The way of a rate: `metering` at the host, a word to the home (`statement`), the home's word on the
submission to all in its `scope` (`dissemination`), `known` there, a network laid of all that is
known (`laying`), and the rounds by names and digests (`rounds_post`). The way of a move: agreed
on, told to the home (`claims`), asked for (`works`).
"""
