"""Which numbers of the verdicts moved, and why: `python tests/claims/moved.py OLD.json [NEW.json]`.

Both are files of records, as `featlab verify --json` prints them; NEW, left out, are those kept with the package.
A check is the same when its number moved by less than 1e-3 of itself. Causes are read off the records: other
seeds, another relation, another worst cell; what has none of these is `unexplained` and must be looked into.
"""

import json
import sys
from pathlib import Path

from featlab.claims.kept import KEPT

SAME = 1e-3


def read(path):
    return {record["id"]: record for record in json.loads(Path(path).read_text()) if "checks" in record}


def cause(old, new, before, after):
    """Why a check's number is another one."""
    if (old["base_seed"], old["seeds"]) != (new["base_seed"], new["seeds"]):
        return f"seeds {old['seeds']} from {old['base_seed']} -> {new['seeds']} from {new['base_seed']}"
    if before["kind"] != after["kind"]:
        return f"{before['kind']} -> {after['kind']}"
    if before.get("worst_cell") != after.get("worst_cell"):
        return f"worst cell {before.get('worst_cell')} -> {after.get('worst_cell')}"
    return "unexplained"


def compare(old, new):
    """Lines of what moved, and how many checks did not."""
    same, lines = 0, []
    for name in sorted(old.keys() & new.keys()):
        before, after = ({check["name"]: check for check in one[name]["checks"]} for one in (old, new))
        if old[name]["status"] != new[name]["status"]:
            lines.append(f"{name}: {old[name]['status']} -> {new[name]['status']} ({new[name]['reason']})")
        lines += [f"{name}: no longer a check: {check}" for check in before if check not in after]
        lines += [f"{name}: new check: {check}" for check in after if check not in before]
        for check in before.keys() & after.keys():
            was, now = before[check]["measured"], after[check]["measured"]
            if was == now or None not in (was, now) and abs(was - now) <= SAME * max(abs(was), 1e-12):
                same += 1
            else:
                why = cause(old[name], new[name], before[check], after[check])
                lines.append(f"{name}: {check}: {was} -> {now} ({why})")
    return same, lines


if __name__ == "__main__":
    if not 2 <= len(sys.argv) <= 3:
        sys.exit(__doc__)
    same, lines = compare(read(sys.argv[1]), read([*sys.argv, KEPT][2]))
    print(*lines, f"{same} checks have the same number; {len(lines)} lines above", sep="\n")
