"""Does a verdict depend on its seeds? `python tests/claims/other_seeds.py [--sets 5] [--only ID ...]`.

Each claim is verified at laptop size on sets of seeds that it was not decided on, one claim and set at a time.
Every outcome is a line of the file given by --out, and what stands there already is not computed again.
docs/trust.md shows how many of how many sets give the verdict that is kept.
"""

import argparse
import json
import time
from collections import Counter
from pathlib import Path

from featlab.claims.kept import OTHER as KEPT
from featlab.claims.kept import kept_verdicts, on_other_seeds

FIRST, APART = 1_620_000_000, 10_000  # none of them was used while claims were written


def read(path=KEPT):
    """What is known already, by claim and base seed."""
    if not path.exists():
        return {}
    lines = [json.loads(line) for line in path.read_text().splitlines() if line.strip()]
    return {(one["id"], one["base_seed"]): one for one in lines}


def counted():
    """For every claim the status that is kept, and how often each came out on other seeds."""
    found = on_other_seeds()
    return {id: (kept["status"], found.get(id, Counter())) for id, kept in kept_verdicts().items()}


def measure(todo, path, known):
    """Verify what is to be done, and write a line after each."""
    from featlab.claims import find_claim
    from featlab.claims.fingerprint import source_of
    from featlab.claims.verify import verify
    from featlab.engine.compiled import keep_compiled_programs

    keep_compiled_programs()
    path.parent.mkdir(parents=True, exist_ok=True)
    for name, base_seed in todo:
        if (name, base_seed) in known:
            continue
        began = time.monotonic()
        verdict = verify(name, "laptop", base_seed=base_seed, progress=False)
        line = {"id": name, "base_seed": base_seed, "status": verdict.status, "reason": verdict.reason}
        line |= {"source": source_of(find_claim(name)), "seconds": round(time.monotonic() - began)}
        with path.open("a") as file:
            file.write(json.dumps(line) + "\n")
        print(f"{name} {base_seed}: {verdict.status}, {line['seconds']} s", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", type=int, default=5)
    parser.add_argument("--only", nargs="*")
    parser.add_argument("--share", default="0/1", help="of several processes, which one this is: 0/2 and 1/2")
    parser.add_argument("--out", type=Path, default=KEPT)
    chosen = parser.parse_args()
    names = [name for name in kept_verdicts() if not chosen.only or name in chosen.only]
    todo = [(name, FIRST + k * APART) for k in range(chosen.sets) for name in names]
    this, among = map(int, chosen.share.split("/"))
    measure(todo[this::among], chosen.out, read() | read(chosen.out))


if __name__ == "__main__":
    main()
