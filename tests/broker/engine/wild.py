"""Short texts of which a few events make more work than a machine can do."""

_DECLARED = "event Temp(val: float)\nevent Key(k: float)\n"
_HEAD = _DECLARED + "subscription Wild seq 1 from anna to alerts\ndetect "

CHAIN = _HEAD + " then ".join(f"Temp as a{at}" for at in range(60)) + "\n"
QUADRUPLES = _HEAD + "Temp as a and Temp as b and Temp as c and Temp as d\n"
LISTS = _HEAD + "Temp as a then Temp+ as b then Key as c within 10 mins where a.val < c.k\n"
WILD = {"chain": CHAIN, "quadruples": QUADRUPLES, "lists": LISTS}
