"""`python -m headwater.cli`: the command line where its script is not installed.

Owns nothing. Must not differ from the script `headwater`. Invariant: the exit status is `main`'s.
"""

import sys

from headwater.cli import main

if __name__ == "__main__":
    sys.exit(main())
