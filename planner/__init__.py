"""Placement of tasks on brokers. Nothing is built here yet.

Will own the way from a task graph, a topology and rates to a plan. Must not know brokers or time.
"""
