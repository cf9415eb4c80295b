"""The option of commands that take functions of one's own.

Owns its name and its help. Must not read the file: `headwater.given` does.
"""

import argparse


def functions_option(parser: argparse._ActionsContainer) -> None:
    """`--functions FILE.py`, in `arguments.functions`; empty where it is not given."""
    parser.add_argument(
        "--functions",
        metavar="FILE.py",
        default="",
        help="a Python file of functions of one's own that the specification may call; it is run",
    )
