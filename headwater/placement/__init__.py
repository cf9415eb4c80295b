"""What `headwater plan` is told and shows: texts and networks, tables, differences, pictures.

Owns what a text and a described network come to as a problem, and the form in which people see a
placement. Must not plan. Invariant: the same plan is shown the same way.

    text and network ─▶ contents ─▶ task_rates (a placement problem)
    files ─▶ run ─▶ planner ─▶ plan_document, show (tables), changes (against an older plan)
                       └─▶ picture (the network), search_plot (how it went), reasons (for people)
"""
