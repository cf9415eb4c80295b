"""What `headwater plan` shows: tables, differences, pictures.

Owns the form in which people see a placement. Must not plan. Invariant: the same plan is shown the
same way.

    files ─▶ run ─▶ planner ─▶ show (tables), changes (against an older plan)
                       └─▶ picture (the network), search_plot (how the search went)
"""
