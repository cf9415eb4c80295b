"""`python -m headwater`: the command line where its script is not on the path.

Owns nothing. Must not differ from the script `headwater`. Invariant: the exit status is `main`'s.
"""

import sys

from headwater.cli import main

if __name__ == "__main__":
    sys.exit(main())
