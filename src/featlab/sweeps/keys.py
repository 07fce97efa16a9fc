"""What a result is of: an address for every run, made of all that its numbers depend on and nothing else.

The numbers are known by their values, featlab's parts by their text and their code (`core.source`), code of the
user's own by the program it makes: the jaxpr of a whole run. So editing the body of an activation or of a probe
changes the address, renaming it does not bring old results back, and a comment changes nothing. JAX's version and
the kind of device count as well.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from typing import Any

import jax
import jax.extend
import jax.numpy as jnp
import numpy as np

from featlab.core import source
from featlab.core.validation import InputError
from featlab.engine.batch import follow
from featlab.engine.blame import answered
from featlab.engine.loop import draw_block
from featlab.engine.program import Program, size_place, takes_traced_size
from featlab.text import describe, foreign, made_of

ENGINE = "featlab.engine.batch"  # what trains units; the rest of their code is that of their parts
WIDTH = 16  # bytes of an address
_ROWS = 8  # of the training set in the program that stands for code of the user's own


def keys_of_cells(programs: Sequence[Program], cells: int, seeds: np.ndarray) -> np.ndarray:
    """One address for every cell and seed of a sweep; (cell, seed, WIDTH) bytes."""
    found = np.zeros((cells, len(seeds), WIDTH), np.uint8)
    for program in programs:
        count = len(program.table.places)
        runs = np.repeat(np.arange(count), len(seeds)), np.tile(seeds, count)
        found[program.table.places] = addresses(program, *runs).reshape(count, -1, WIDTH)
    return found


def addresses(program: Program, experiments: np.ndarray, seeds: np.ndarray) -> np.ndarray:
    """One address for each run of (experiment, seed); (run, WIDTH) bytes."""
    prefix = hashlib.blake2b(_parts(program).encode(), digest_size=WIDTH).digest()
    columns = dict(program.table.columns)
    n = size_place(program.first)
    if n is not None and n not in columns:
        columns[n] = np.full(len(program.table.places), program.first.data.n)
    nothing = np.zeros((len(program.table.places), 0))
    numbers = np.column_stack([nothing, *[columns[place] for place in sorted(columns)]]).astype("<f8")
    of_experiments = [hashlib.blake2b(prefix + row.tobytes(), digest_size=WIDTH) for row in numbers + 0.0]
    found = bytearray()
    for experiment, seed in zip(experiments.tolist(), seeds.tolist()):
        one = of_experiments[experiment].copy()
        one.update(seed.to_bytes(4, "little"))
        found += one.digest()
    return np.frombuffer(bytes(found), np.uint8).reshape(-1, WIDTH)


def _parts(program: Program) -> str:
    """The text of what is the same in all experiments of a program."""
    leaves, parts = jax.tree.flatten(program.first)
    n = size_place(program.first)
    blank = [0.0 if isinstance(leaf, float) else 0 if i == n else leaf for i, leaf in enumerate(leaves)]
    code = source.fingerprint({ENGINE, *(name for name in made_of(program.first) if name.startswith("featlab."))})
    version = ".".join(jax.__version__.split(".")[:2])
    made_by = f"featlab {code}, JAX {version} on {jax.default_backend()}"
    text = f"{made_by}: {describe(jax.tree.unflatten(parts, blank))}"
    names = foreign(program.first)
    return text if not names else f"{text} with {_program_text(program, names)}"


def _program_text(program: Program, names: list[str]) -> str:
    """The program of one run, as text: what code of the user's own comes to."""
    first, n = program.first, size_place(program.first)
    leaves, parts = jax.tree.flatten(first)
    traced = takes_traced_size(first)  # then one program stands for all n
    rows = _ROWS if traced else first.data.n
    space, listed = first.empty_space(rows), ", ".join(names)

    def whole(numbers, seed):
        filled = list(leaves)
        for place, number in numbers.items():
            filled[place] = number
        experiment = jax.tree.unflatten(parts, filled)
        block = draw_block(experiment, None, space, seed, rows, products=program.products)
        return follow(block, experiment.last_step, reduced=True)

    places = [i for i, leaf in enumerate(leaves) if isinstance(leaf, float) or (traced and i == n)]
    with jax.enable_x64(first.precision == 64):
        numbers = {i: jnp.asarray([leaves[i]], int if i == n else float) for i in places}
        with answered(first):
            try:
                jaxpr = jax.make_jaxpr(whole)(numbers, jnp.zeros(1, jnp.uint32))
            except (jax.errors.JAXTypeError, jax.errors.JAXIndexError) as error:
                raise InputError(
                    f"Results of {listed} cannot be stored, since JAX cannot trace it ({type(error).__name__}); "
                    "write it with jax.numpy."
                ) from None
    inside = list(_inside(jaxpr))
    if any("callback" in equation.primitive.name for one in inside for equation in one.jaxpr.eqns):
        raise InputError(
            f"Results of {listed} cannot be stored: it calls back into Python, where featlab cannot see whether "
            "it has changed; leave `out` away, or write it with jax.numpy."
        )
    constants = b"".join(_bytes(constant) for one in inside for constant in _constants(one))
    # Addresses in memory and places in files say nothing about what is computed.
    text = re.sub(r" at 0x[0-9a-f]+|0x[0-9a-f]+", "", str(jaxpr))
    return hashlib.blake2b(text.encode() + constants, digest_size=WIDTH).hexdigest()


def _inside(closed: Any) -> Iterator[Any]:
    """A jaxpr and all that its equations hold."""
    yield closed
    for equation in closed.jaxpr.eqns:
        for value in equation.params.values():
            for one in value if isinstance(value, tuple | list) else (value,):
                if hasattr(one, "eqns"):
                    inner, constants = getattr(one, "jaxpr", one), getattr(one, "consts", ())
                    yield from _inside(jax.extend.core.ClosedJaxpr(inner, constants))


def _constants(closed: Any) -> Iterator[Any]:
    """The arrays that a jaxpr knows by value; its text tells no more of them than their shapes."""
    yield from closed.consts
    known = [*closed.jaxpr.outvars, *[v for equation in closed.jaxpr.eqns for v in equation.invars]]
    yield from (v.val for v in known if isinstance(v, jax.extend.core.Literal))


def _bytes(constant: Any) -> bytes:
    if isinstance(constant, jax.Array) and jnp.issubdtype(constant.dtype, jax.dtypes.prng_key):
        constant = jax.random.key_data(constant)
    value = np.asarray(constant)
    return f"{value.dtype}{value.shape}".encode() + value.tobytes()
