"""Commands that nobody would type, from a grammar and a seed: `python tests/commands/fuzz.py 5000 [FIRST SEED]`.

Each is answered: done, or refused with one sentence of at most 300 characters and exit code 2. What the grammar
knows to be nonsense must be refused.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import tempfile
import time
import warnings
from collections import Counter
from pathlib import Path
from typing import NamedTuple

from click.testing import CliRunner

from featlab.commands.cli import main

LIMIT = 30  # seconds for a command

FINE = {
    "data": [
        "SignalNoise(n=4, d=1e4, snr=0.5)",
        "SignalNoise(n=4, d=60, snr=0.5, label_flip=0.1)",
        "Minibatches(SignalNoise(n=4, d=1e4, snr=.5), 2)",
    ],
    "network": ["TwoLayerCNN(width=2)", "TwoLayerCNN(2, relu_power(3))", "MLP(width=4, depth=1)", "TwoLayer(3)"],
    "algorithm": ["GradientDescent(0.1)", "Adam(0.1)", "SAM(0.1, 0.05)", "GradientFlow(0.1, 4)"],
    "objective": ["logistic", "squared", "hinge"],
    "probes": [
        "train_loss",
        "(train_loss, test_error(count=9))",
        "train_loss.on(at_end)",
        "(test_error.on(every(2)),)",
    ],
    "steps": ["3", "0", "until(train_loss, 0.6, 4)"],
}
# fmt: off
NUMBERS = [
    "nan", "inf", "-inf", "-1", "0", "1e400", "1e25", "99999999999999999999999", "-0.0", "1/0", "0**-1",
    "1e-400", "'3'", "none", "true", "[]", "(1,)", "3.5", "1j", "0x10", "1_000", "٣", "relu", "2**2**20",
    "9**9**9",
]
WORDS = [
    "", " ", "#", "\x00", "\n", "ünï", "💥", "a" * 5000, "(" * 500, "[" * 3000 + "]" * 3000, "-" * 3000 + "1",
    "1" + "+1" * 3000, "lambda z: z", "__import__('os')", "builtins.exit", "os.system", "().__class__",
    "unwritable()", "unwritable(3)", "Experiment", "Experiment()", "SignalNoise", "SignalNoise()",
    "SignalNoise(1,2,3,4,5,6,7,8,9)", "SignalNoise(m=3)", "SignalNoise(n=1, n=2)", "SignalNoise(**x)",
    "SignalNoise(*x)", "Span", "Ambient(3)", "relu(3)", "train_loss(3)", "train_loss(count=3)",
    "test_error(count=0)", "test_error(count=1e99)", "train_loss.on(3)", "train_loss.on()",
    "train_loss.nothing", "every(0)", "every(-1)", "hermite_series(())", "hermite_series(3)", "all_of(3)",
    "until(relu, 1)", "featlab.data.AbstractDataModel()", "AbstractNetwork", "jax.numpy", "jax.jit(relu)",
    "numpy.tanh", "Then(Adam(1), 2, Adam(1))", "{}", "{1: 2}", "'relu'", "[[[]]]", "1 if 1 else 2", "x := 3",
    "f'{1}'", "yield", "...", "None", "True", "print(1)", "[x for x in y]", "a.b.c.d", "[/red]", "$x$",
    "\\frac", "<script>", "%s%n", "../../etc/passwd", "snr", "data",
]
PLACES = [
    "data.n", "data.d", "data.snr", "data.noise_scale", "data.label_flip", "network.width",
    "network.init_scale", "network.activation", "algorithm.learning_rate", "steps", "precision", "space",
    "record", "probes", "objective", "data", "network", "algorithm",
]
PATHS = [
    *PLACES, "", ".", "..", "data.", ".n", "data.n.m", "nothing", "data.nothing", "data..n", "n" * 3000,
    "data.__class__", "seeds",
]
RANGES = [
    "1:2:3", "2:8:3log", "2,3", "0:1:2", "1:2:0", "1:2:-3", "1:2:1e9", "a:b:c", "::", ":::", "1:2", "nan:1:3",
    "0:1:3log", "-1:1:3log", "relu,relu_power(3)", ",", ",,", "2,2", "1:inf:3", "1:2:3log3", "log", "1:1:1",
    "1:2:2.5",
]
NONSENSE = {
    "nan", "-inf", "1e400", "1/0", "0**-1", "'3'", "[]", "1j", "٣", "9**9**9", "builtins.exit", "os.system",
    "__import__('os')", "SignalNoise(n=1, n=2)", "SignalNoise(**x)", "print(1)", "unwritable()",
    "test_error(count=0)", "hermite_series(())",
}
# fmt: on


SENSIBLE = {
    "data.n": "5",
    "data.d": "1e3",
    "data.snr": "1/3",
    "network.width": "3",
    "algorithm.learning_rate": "2**-4",
    "steps": "2",
    "precision": "64",
    "space": "Ambient",
    "record": "every(2)",
    "probes": "train_loss",
}


class TooLong(BaseException):
    """Not an Exception, which a command may answer."""


class Case(NamedTuple):
    """A command, the files it finds, and whether it must be refused."""

    arguments: list[str]
    files: dict[str, bytes]
    nonsense: bool = False


def case(rng: random.Random) -> Case:
    """A command from the grammar."""
    kind = rng.choice(["change", "change", "toml", "toml", "sweep", "compare", "again", "bytes", "option", "name"])
    return {
        "change": _change,
        "toml": _toml,
        "sweep": _sweep,
        "compare": _compare,
        "again": _again,
        "bytes": _bytes,
    }.get(kind, _option if kind == "option" else _name)(rng)


def _value(rng: random.Random) -> str:
    return rng.choice([NUMBERS, WORDS, [rng.choice(one) for one in FINE.values()]][rng.choice([0, 0, 1, 1, 2])])


def _stated(rng: random.Random) -> dict[str, str]:
    return {name: rng.choice(values) for name, values in FINE.items()}


def _written(stated: dict[str, str]) -> bytes:
    return "\n".join(f"{name} = {json.dumps(value)}" for name, value in stated.items()).encode(
        "utf-8", "surrogatepass"
    )


def _change(rng: random.Random) -> Case:
    value, path = _value(rng), rng.choice(PATHS)
    if rng.random() < 0.1:
        path, value = rng.choice(list(SENSIBLE.items()))
    return Case(["run", "t.toml", f"{path}={value}"], {"t.toml": _written(_stated(rng))}, value in NONSENSE)


def _toml(rng: random.Random) -> Case:
    stated, value = _stated(rng), _value(rng)
    match rng.randrange(5):
        case 0:
            stated[rng.choice(list(stated))] = value
            return Case(["run", "t.toml"], {"t.toml": _written(stated)}, value in NONSENSE)
        case 1:
            del stated[rng.choice(["data", "network", "algorithm"])]
            return Case(["run", "t.toml"], {"t.toml": _written(stated)}, True)
        case 2:
            raw = rng.choice(["seeds", "title", "compare", "nothing", "record", '"' + "k" * 2000 + '"'])
            given = rng.choice(
                [
                    "[3, 4]",
                    '"many"',
                    "2.9",
                    "true",
                    "[]",
                    "{}",
                    "0",
                    "-1",
                    "[[1]]",
                    "1e30",
                    "nan",
                    "[" * 900 + "]" * 900,
                    '"[/red]"',
                    "1979-05-27",
                    "{kind = 3}",
                    '"x"',
                    "9223372036854775808",
                    "[3, 3]",
                ]
            )
            return Case(["run", "t.toml"], {"t.toml": f"{raw} = {given}\n".encode() + _written(stated)})
        case 3:
            table = rng.choice(
                [
                    'kind = "SignalNoise"\nn = "x"',
                    "kind = 3",
                    "n = 3",
                    'kind = "relu"\nz = 1',
                    'kind = "Ambient"',
                    "",
                ]
            )
            del stated["data"]
            return Case(["run", "t.toml"], {"t.toml": _written(stated) + f"\n[data]\n{table}\n".encode()}, True)
        case _:
            text = bytearray(_written(stated))
            for _ in range(rng.randrange(1, 9)):
                text[rng.randrange(len(text))] = rng.randrange(256)
            return Case(["run", "t.toml"], {"t.toml": bytes(text)})


def _sweep(rng: random.Random) -> Case:
    grid = f"{rng.choice(PATHS)}={rng.choice([*RANGES, _value(rng)])}"
    more = rng.choice(
        [
            [],
            ["--near", rng.choice(["train_loss=0.5", "x=1", "=", "train_loss=nan", "train_loss"])],
            ["--show", _value(rng)],
            ["--seeds", rng.choice(["0", "-1", "x", "1e3", "9" * 30])],
        ]
    )
    return Case(["sweep", "t.toml", f"--grid={grid}", *more], {"t.toml": _written(_stated(rng))})


def _compare(rng: random.Random) -> Case:
    algorithms = [
        rng.choice([*FINE["algorithm"], "a: Adam(0.1)", "[/b]: Adam(0.1)", ": Adam(0.1)", "Adam(", _value(rng)])
        for _ in range(2)
    ]
    return Case(["compare", "t.toml", "--", *algorithms], {"t.toml": _written(_stated(rng))})


def _again(rng: random.Random) -> Case:
    record = {
        "id": "kim2024_strict_saddle",
        "setting": {},
        "size": "tiny",
        "seeds": 3,
        "base_seed": 0,
        "judged": 1,
    }
    record[rng.choice(list(record))] = rng.choice(
        [None, [], {}, -1, 1e99, "x", "../x", float("nan"), 2**70, True, {"n": "unwritable()"}, "[/b]"]
    )
    text = rng.choice(
        [
            json.dumps(record),
            json.dumps([record, 3]),
            "[" * 4000 + "]" * 4000,
            "{}",
            "[]",
            "null",
            "NaN",
            '"x"',
            "{",
            "",
        ]
    )
    return Case(
        ["verify", "--again", "r.json"],
        {"r.json": text.encode()},
        text in ("{}", "[]", "null", "NaN", '"x"', "{", ""),
    )


def _bytes(rng: random.Random) -> Case:
    content = rng.choice(
        [
            b"",
            b"\xff\xfe",
            rng.randbytes(300),
            b"\x00" * 99,
            b"x = " + b"[" * 5000,
            "ü".encode("latin-1"),
            b"\xef\xbb\xbfsteps = 3",
        ]
    )
    verb = rng.choice(
        [
            ["run", "f"],
            ["sweep", "f", "--grid", "data.n=2,3"],
            ["compare", "f", "Adam(0.1)"],
            ["verify", "--again", "f"],
            ["meter", "f"],
        ]
    )
    return Case(verb, {"f": content}, True)


def _option(rng: random.Random) -> Case:
    verb = rng.choice(
        ["run", "sweep", "compare", "verify", "show", "cite", "claims", "atlas", "meter", "new", "play", "errata"]
    )
    flag = rng.choice(
        ["--seeds", "--size", "--out", "--nothing", "--base-seed", "--grid", "--json=3", "--claims", "--port", ""]
    )
    return Case(
        [verb, "t.toml", flag, rng.choice([*NUMBERS, "/proc/nope", "/dev/null/x", "\x00" and "x" * 4000])],
        {"t.toml": b"x = 1"},
        True,
    )


def _name(rng: random.Random) -> Case:
    name = rng.choice([*WORDS, "cao", "CAO2022_PHASE", "../cao2022_phase", "cao2022_phase.py"])
    return Case([rng.choice(["run", "verify", "show", "cite", "sweep"]), "--", name], {}, True)


def answer(one: Case, folder: Path) -> str:
    """What is wrong with the answer to a command; empty if nothing is."""
    for name, content in one.files.items():
        (folder / name).write_bytes(content)

    def too_long(*_):
        raise TooLong

    before, handler = Path.cwd(), signal.signal(signal.SIGALRM, too_long)
    os.chdir(folder)
    signal.alarm(LIMIT)
    try:
        with warnings.catch_warnings(action="ignore"):  # as at a terminal, where they end nothing
            result = CliRunner().invoke(main, one.arguments)
    except TooLong:
        return f"it takes more than {LIMIT} s"
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, handler)
        os.chdir(before)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        return f"{type(result.exception).__name__}: {str(result.exception)[:200]}"
    if result.exit_code not in (0, 2, 3):
        return f"exit code {result.exit_code}: {result.output[-200:]}"
    if result.exit_code == 0 and one.nonsense:
        return "nonsense is accepted"
    last = result.stderr.strip().splitlines()[-1:]
    if result.exit_code == 2 and (not last or len(last[0]) > 300 or "Traceback" in result.stderr):
        return f"exit 2 with {len(last[0]) if last else 0} characters: {result.stderr[-200:]}"
    return ""


def told(one: Case) -> str:
    """A case as somebody would repeat it."""
    return f"{[a[:120] for a in one.arguments]} with { ({k: v[:300] for k, v in one.files.items()}) }"


def run(count: int, first: int) -> int:
    """So many cases; how many were answered badly."""
    bad, kinds, since = 0, Counter[str](), time.time()
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(first, first + count):
            one = case(random.Random(seed))
            started = time.time()
            wrong = answer(one, Path(folder))
            kinds[wrong[:60] or "fine"] += 1
            if wrong:
                bad += 1
                print(f"seed {seed}, {time.time() - started:.0f} s: {wrong}\n    {told(one)}", flush=True)
    print(f"{count} cases in {time.time() - since:.0f} s, {bad} badly answered: {kinds.most_common(20)}")
    return bad


if __name__ == "__main__":
    sys.exit(1 if run(int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0) else 0)
