"""The brokers decide by themselves where each submission's tasks run, following the load.

Owns what brokers tell each other of tasks and rates, and the driving of the planning rounds
(`planner.rounds`). Must not know sockets, clocks, nor how a task is moved: `place` says where one
is to run. Invariant: of each submission its home alone decides where it runs; the rounds agree on
what the home is to decide.
"""
