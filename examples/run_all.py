"""Run every experiment stated in this folder, and compare the algorithms it lists: results, figures and tables.

python examples/run_all.py --out out/examples
"""

from __future__ import annotations

import argparse
from pathlib import Path

from featlab.commands.compare import compare_file
from featlab.commands.run import run_file
from featlab.text import load_experiment


def main(out: Path, only: list[str]) -> None:
    """One folder of results and figures for each TOML file."""
    for path in sorted(Path(__file__).parent.glob("*.toml")):
        if not only or path.stem in only:
            run_file(str(path), out=str(out / path.stem))
            if "compare" in load_experiment(path)[1]:
                compare_file(str(path), out=str(out / f"{path.stem}-compare"))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("out"), help="folder to write to (default: out)")
    parser.add_argument("only", nargs="*", help="names of TOML files, without the ending; all if none is given")
    given = parser.parse_args()
    main(given.out, given.only)
