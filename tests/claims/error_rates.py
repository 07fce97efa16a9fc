"""How often the judge is wrong: laws whose mean lies at a bound or beyond, judged as lying below it.

`python tests/claims/error_rates.py` prints the table of docs/claims.md; a test repeats it with fewer sets.
"""

import math
import zlib

import numpy as np
import scipy.stats

from featlab.claims import at_least, at_most, equals

SEEDS = (4, 12, 24, 32, 64)
SETS = 4000
PROMISED = 0.03  # supported or refuted in error, at most

BOUND = 1.0


def rare(share, mean=BOUND):
    """Seeds that give 0 but for a share of them, which fail so badly that the mean is at the bound or beyond."""
    return lambda rng, shape: np.where(rng.random(shape) < share, mean / share, 0.0)


# Each has its mean at the bound, where errors are most frequent, unless its name says otherwise.
FALSE = {
    "normal": lambda rng, shape: BOUND + rng.normal(size=shape),
    "exponential": lambda rng, shape: rng.exponential(size=shape),
    "lognormal, sigma = 1/2": lambda rng, shape: rng.lognormal(-1 / 8, 0.5, size=shape),
    "lognormal, sigma = 1": lambda rng, shape: rng.lognormal(-1 / 2, 1.0, size=shape),
    "lognormal, sigma = 2": lambda rng, shape: rng.lognormal(-2, 2.0, size=shape),
    "Student, 3 degrees of freedom": lambda rng, shape: BOUND + rng.standard_t(3, size=shape),
    "Pareto, exponent 3": lambda rng, shape: 2 * rng.pareto(3, size=shape),
    "a coin, 0 or 2": lambda rng, shape: 2.0 * (rng.random(shape) < 0.5),
    "15 % of the seeds fail": rare(0.15),
    "15 % fail, mean 44 % beyond": rare(0.15, 1.44),
    "30 % of the seeds fail": rare(0.3),
    "50 % of the seeds fail": rare(0.5),
}
# Of such laws the mean is made by values that most sets of seeds do not hold: no interval over seeds is right.
NOT_COVERED = {
    "lognormal, sigma = 3": lambda rng, shape: rng.lognormal(-9 / 2, 3.0, size=shape),
    "Pareto, exponent 1.5": lambda rng, shape: rng.pareto(1.5, size=shape) / 2,
    "Pareto, exponent 1.1": lambda rng, shape: rng.pareto(1.1, size=shape) / 10,
}
TRUE = {
    "normal, 4 deviations inside": lambda rng, shape: BOUND - 4 + rng.normal(size=shape),
    "exponential, mean at a tenth of the bound": lambda rng, shape: rng.exponential(1 / 10, size=shape),
    "all seeds at half the bound": lambda rng, shape: np.full(shape, BOUND / 2),
}


def generator(*names):
    return np.random.default_rng(zlib.crc32(repr(names).encode()))


def rates(law, name, seeds, sets):
    """The share of sets of seeds for which "at most the bound" is supported, and for which it is refuted.

    Said of the mean: of each run, it is supported less often still, the judge asking for more.
    """
    values = law(generator(name, seeds, sets), (sets, seeds))
    found = [at_most("x", row, BOUND, on_average=True).status(250) for row in values]
    return found.count("supported") / sets, found.count("refuted") / sets


def mirrored(law, name, seeds, sets):
    """The same law upside down, judged by `at_least`; and moved to an edge of what `equals` allows."""
    values = law(generator(name, seeds, sets), (sets, seeds))
    least = [at_least("x", -row, -BOUND, on_average=True).status(250) for row in values].count("supported") / sets
    # A region of half width 1 around 20, whose upper edge is the bound: 21.
    two = [equals("x", row + 20, 20.0, 0.05).status(250) for row in values].count("supported") / sets
    return least, two


def refuted(law, name, seeds, sets):
    """How often a theorem is refuted that holds, if only just: "at least the bound", and the other two relations.

    A mean at the bound satisfies both "at most" and "at least"; most seeds of a skewed law lie on one side.
    """
    values = law(generator(name, seeds, sets), (sets, seeds))
    judges = (lambda row: at_least("x", row, BOUND), lambda row: at_most("x", -row, -BOUND))
    # The lower edge of what `equals` allows is the bound: 19 of 19 to 21.
    judges += (lambda row: equals("x", row + 18, 20.0, 0.05),)
    return [[judge(row).status(250) for row in values].count("refuted") / sets for judge in judges]


# Those of the false whose mean is at the bound, where a theorem that says "at least" still holds.
JUST = {name: law for name, law in FALSE.items() if "beyond" not in name} | {
    "20 % of the seeds give 10, the others 0; mean twice the bound": lambda rng, shape: np.where(
        rng.random(shape) < 0.2, 10.0, 0.0
    ),
}


def table(sets=SETS):
    heads = ["law", *(f"{seeds} seeds" for seeds in SEEDS)]
    lines = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    rows = [(f"false: supported, {name}", lambda *of: rates(*of)[0], law, name) for name, law in FALSE.items()]
    rows += [(f"true: refuted, {name}", lambda *of: refuted(*of)[0], law, name) for name, law in JUST.items()]
    rows += [(f"true: supported, {name}", lambda *of: rates(*of)[0], law, name) for name, law in TRUE.items()]
    rows += [
        (f"not covered: supported, {name}", lambda *of: rates(*of)[0], law, name)
        for name, law in NOT_COVERED.items()
    ]
    for words, rate, law, name in rows:
        cells = [f"{100 * rate(law, name, seeds, sets):.1f} %" for seeds in SEEDS]
        lines.append(f"| {words} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def most(sets, rate, once_in=1e-4):
    return scipy.stats.binom.ppf(1 - once_in, sets, rate) / sets


if __name__ == "__main__":
    assert math.isclose(PROMISED, 0.03)
    print(table())
