"""Keep the verdicts of deciding runs with the package: `python tests/claims/keep.py FOLDER`.

FOLDER is what `featlab verify --out FOLDER --decide` wrote. What is kept is what pages and tables show.
"""

import json
import sys
from pathlib import Path

from featlab.claims.kept import KEPT

RECORD = ("id", "status", "word", "reason", "size", "seeds", "base_seed", "trained_fraction", "exploratory")
RECORD += ("evidence", "clauses", "checks")
CHECK = ("name", "kind", "measured", "low", "high", "expected", "margin", "lower", "upper", "status", "evidence")
CHECK += ("seeds", "dropped", "worst_cell")


def kept(record):
    one = {name: record[name] for name in RECORD}
    one["checks"] = [{name: check[name] for name in CHECK} for check in record["checks"]]
    return one


def keep(folder, path=KEPT):
    found = {record["id"]: record for record in json.loads(path.read_text())}
    for file in sorted(Path(folder).glob("*.json")):
        for record in json.loads(file.read_text()):
            found[record["id"]] = kept(record)
    path.write_text(json.dumps([found[name] for name in sorted(found)], indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    if len(sys.argv) != 2 or not Path(sys.argv[1]).is_dir():
        sys.exit(__doc__)
    keep(sys.argv[1])
