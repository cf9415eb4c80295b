"""Runs in which a home is lost, and its stand-in takes it over.

Owns the loss of a home (`loss`), the run around it (`scenario`) and what must hold in the end
(`judgement`). Must not know how a copy of a home is kept. Invariant: what is sent and asked for is
drawn as in `simulation.network.scenario`, so that one engine is the measure here, too.

The way through a run: it begins as any run of brokers whose tasks move. Then a home is lost, a
person has its stand-in take over, and in four of five ways the home comes back.

    goes on --lost--> away --a person's word--> taken over --(unless destroyed)--> back, given up
"""
