"""The address of a run: the same for the same run anywhere, another for anything its numbers depend on."""

import dataclasses
import importlib.util
import math
import os
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import featlab as fl
from featlab.core import source
from featlab.engine import batch as many
from featlab.engine.batch import train_many
from featlab.engine.program import programs_of
from featlab.sweeps import keys as module
from featlab.sweeps.keys import addresses

P = fl.probes
TINY = fl.Experiment(
    data=fl.data.SignalNoise(n=6, d=math.inf, snr=0.5),
    network=fl.networks.TwoLayerCNN(width=2, init_scale=0.3),
    algorithm=fl.algorithms.GradientDescent(1.0),
    probes=[P.test_error(count=50)],
    steps=5,
)


def of(*experiments, seed=0):
    """The address of each experiment with this seed, all programs_of together."""
    found = [""] * len(experiments)
    for group in programs_of(experiments):
        count = len(group.table.places)
        listed = addresses(group, np.arange(count), np.full(count, seed))
        assert listed.shape == (count, module.WIDTH) and listed.dtype == np.uint8
        for place, one in zip(group.table.places, listed):
            found[place] = one.tobytes().hex()
    return found if len(found) > 1 else found[0]


def within(base, part, **changes):
    return dataclasses.replace(base, **{part: dataclasses.replace(getattr(base, part), **changes)})


def activated(activation):
    return within(TINY, "network", activation=activation)


def test_whatever_changes_a_number_changes_the_address():
    finite = within(TINY, "data", d=1e6)
    cubed = activated(fl.networks.relu_power(3))
    until = dataclasses.replace(TINY, steps=P.until(P.test_error, 0.1, 9))
    others = [
        TINY,
        finite,
        cubed,
        until,
        within(TINY, "data", snr=0.5000000001),
        within(TINY, "data", n=7),
        within(TINY, "data", label_flip=0.1),
        within(TINY, "data", test_flip=0.1),
        within(TINY, "data", random_slot=True),
        within(finite, "data", d=1e7),
        within(finite, "data", noise_scale=2.0),
        within(finite, "data", snr=None, signal_norm=0.5),
        within(finite, "data", orthogonal=False),
        dataclasses.replace(finite, data=fl.data.XorSignalNoise(n=6, d=1e6, snr=0.5)),
        dataclasses.replace(TINY, data=fl.data.Minibatches(TINY.data, 3)),
        dataclasses.replace(TINY, data=fl.data.Minibatches(TINY.data, 2)),
        within(TINY, "network", width=3),
        within(TINY, "network", init_scale=0.31),
        within(TINY, "network", bias=True),
        activated(fl.networks.relu_power(2)),
        activated(fl.networks.relu_power(2.5)),
        activated(fl.networks.relu_power(2.25)),
        within(TINY, "algorithm", learning_rate=1.1),
        within(TINY, "algorithm", momentum=0.0),
        within(TINY, "algorithm", momentum=0.5),
        dataclasses.replace(TINY, algorithm=fl.algorithms.PacedDescent(0.1)),
        dataclasses.replace(TINY, objective=fl.objectives.squared),
        dataclasses.replace(TINY, steps=6),
        dataclasses.replace(until, steps=P.until(P.test_error, 0.2, 9)),
        dataclasses.replace(until, steps=P.until(P.test_error, 0.1, 10)),
        dataclasses.replace(TINY, precision=64),
        dataclasses.replace(TINY, probes=[P.test_error(count=51)]),
        dataclasses.replace(TINY, probes=[P.test_error(count=50), P.train_loss]),
        dataclasses.replace(TINY, probes=[P.test_error(count=50).on(P.throughout)]),
        dataclasses.replace(TINY, probes=[P.test_error(count=50).on(P.first(P.below(P.train_loss, 0.6)))]),
        dataclasses.replace(TINY, probes=[P.test_error(count=50).on(P.first(P.below(P.train_loss, 0.5)))]),
        dataclasses.replace(finite, space=fl.Span),
        dataclasses.replace(within(TINY, "data", d=20.0), space=fl.Ambient),
    ]
    found = of(*others)
    assert len(set(found)) == len(others)
    assert of(TINY, seed=1) not in found
    # Alone, and among others of the same kind, it is the same.
    for i in (0, 4, 5, 9, 20, 28):
        assert of(others[i]) == found[i]
    assert of(within(TINY, "data", snr=0.5 + 0.0)) == found[0]


def test_the_address_depends_neither_on_the_grid_nor_on_padding(monkeypatch):
    experiments = [
        within(within(TINY, "data", snr=s, n=n), "algorithm", learning_rate=r)
        for s in (0.1, 0.5)
        for n in (5, 6, 20)
        for r in (1.0, 2.0)
    ]
    together = of(*experiments)
    assert len(set(together)) == 12
    assert [of(one) for one in experiments] == together
    assert of(*experiments[::-1]) == together[::-1]
    monkeypatch.setattr(many, "_TOGETHER", 1)
    assert of(*experiments[3:7]) == together[3:7]


ELSEWHERE = """
import sys
sys.path.insert(0, {folder!r})
import mine
import featlab as fl, math, dataclasses, numpy as np
from featlab.engine.program import programs_of
from featlab.sweeps.keys import addresses
P = fl.probes
tiny = fl.Experiment(
    data=fl.data.SignalNoise(n=6, d=math.inf, snr=0.5),
    network=fl.networks.TwoLayerCNN(width=2, init_scale=0.3),
    algorithm=fl.algorithms.GradientDescent(1.0),
    probes=[P.test_error(count=50)],
    steps=5,
)
own = dataclasses.replace(tiny, network=dataclasses.replace(tiny.network, activation=mine.act))
for one in (tiny, own):
    (group,) = programs_of([one])
    print(addresses(group, np.array([0]), np.array([0])).tobytes().hex())
"""


def imported(folder, text, name="mine"):
    """The text as a module, imported anew."""
    path = folder / f"{name}.py"
    path.write_text("import jax, jax.numpy as jnp\nimport featlab as fl\n" + text)
    spec = importlib.util.spec_from_file_location(name, path)
    found = importlib.util.module_from_spec(spec)
    sys.modules[name] = found
    spec.loader.exec_module(found)
    return found


CUBE = "def act(z):\n    return jax.nn.softplus(z) ** 3\n"


def test_the_address_is_the_same_in_another_process(tmp_path):
    mine = imported(tmp_path, CUBE)
    text = ELSEWHERE.format(folder=str(tmp_path))
    environment = os.environ | {"PYTHONHASHSEED": "17"}
    there = subprocess.run(
        [sys.executable, "-c", text], env=environment, capture_output=True, text=True, check=True
    )
    assert there.stdout.split() == of(TINY, activated(mine.act))


def test_code_of_the_users_own_is_known_by_what_it_computes(tmp_path):
    """A comment or another way of writing the same changes nothing; a name does, and the runs are done anew."""
    first = of(activated(imported(tmp_path, CUBE).act))
    same = (
        "# a comment\ndef act(y):\n    'the third power'\n    x = jax.nn.softplus(y)\n    return x ** 3  # cubed\n"
    )
    assert of(activated(imported(tmp_path, same).act)) == first
    edited = [
        CUBE.replace("** 3", "** 2"),
        CUBE.replace("softplus", "relu"),
        CUBE.replace("** 3", "** 3 + 1e-12"),
        CUBE.replace("return", "z = z + helper(z)\n    return") + "def helper(z):\n    return 0.1 * z\n",
        CUBE.replace("return", "z = z + helper(z)\n    return") + "def helper(z):\n    return 0.2 * z\n",
    ]
    found = [of(activated(imported(tmp_path, text).act)) for text in edited]
    assert len({first, *found}) == 6
    assert of(activated(imported(tmp_path, CUBE.replace("act", "cube")).cube)) not in [first, *found]


def test_constants_and_closures_are_part_of_the_code():
    def table(numbers, library):
        fixed = library.asarray(numbers)
        return activated(lambda z: jax.jit(lambda z: jnp.interp(z, jnp.arange(3.0), fixed))(z))

    def scaled(by):
        return activated(lambda z: by * jax.nn.relu(z))

    assert of(scaled(2.0)) == of(scaled(2.0)) != of(scaled(2.5))
    for library in (np, jnp):
        assert (
            of(table([0.0, 1, 2], library)) == of(table([0.0, 1, 2], library)) != of(table([0.0, 1, 3], library))
        )
    long = np.arange(3000.0)
    other = long.copy()
    other[1500] += 1
    assert len({of(activated(lambda z, c=c: z * jnp.asarray(c).mean())) for c in (long, other)}) == 2


MODEL = """
class Mine(fl.data.SignalNoise):
    def toss(self, key, training):
        label, clean, coins = super().toss(key, training)
        return label * 1.0, clean, coins
"""


@pytest.mark.slow
def test_optimisers_losses_probes_and_models_of_the_users_own(tmp_path):
    def by(optimiser):
        return within(dataclasses.replace(TINY, algorithm=fl.algorithms.Descent(optimiser)), "data", d=20.0)

    optimisers = [optax.adam(0.1), optax.adam(0.2), optax.adam(0.1, b1=0.8), optax.sgd(0.1)]
    assert len({of(by(one)) for one in optimisers}) == 4
    assert of(by(optax.adam(0.1))) == of(by(optax.adam(0.1)))

    def losing(by):
        return dataclasses.replace(TINY, objective=lambda output, label: by * (output - label) ** 2)

    assert of(losing(1.0)) == of(losing(1.0)) != of(losing(2.0))

    def read(power):
        variables = {"size": P.Variable()}
        probe = P.probe(sees=fl.Sees.VECTORS, **variables)(lambda view: jnp.sum(view.weights**power))
        return dataclasses.replace(within(TINY, "data", d=1e4), probes=[probe])

    assert of(read(2)) == of(read(2)) != of(read(4))

    def with_model(text):
        return dataclasses.replace(TINY, data=imported(tmp_path, text).Mine(n=6, d=math.inf, snr=0.5))

    first = of(with_model(MODEL))
    assert (
        of(with_model(MODEL.replace("label * 1.0", "label * 2.0"))) != first == of(with_model(MODEL + "# same\n"))
    )
    other = with_model(MODEL)
    assert len(set(of(other, within(other, "data", snr=0.6), within(other, "data", n=7)))) == 3
    assert of(within(other, "data", n=7)) == of(other, within(other, "data", n=7))[1]


def called_back(z):
    return jax.pure_callback(np.maximum, jax.ShapeDtypeStruct(z.shape, z.dtype), z, 0.0, vmap_method="expand_dims")


@jax.custom_jvp
def outside(z):
    return called_back(z)


outside.defjvp(lambda primals, tangents: (outside(*primals), tangents[0]))


def test_what_calls_back_into_python_is_not_stored_and_says_so(tmp_path):
    base = dataclasses.replace(activated(outside), steps=1)
    with pytest.raises(fl.InputError, match="outside cannot be stored: it calls back into Python") as error:
        fl.sweep(base, {"data.snr": [0.5]}, out=tmp_path / "store")
    assert "\n" not in str(error.value) and not (tmp_path / "store").exists()
    found = fl.sweep(base, {"data.snr": [0.5]})
    assert found.done.all() and np.isfinite(found.test_error).all()


def test_a_model_without_any_real_number_has_an_address():
    class Fixed(fl.data.AbstractDataModel):
        n = 4
        d = 2.0

        def draw(self, key, truth, space, rows):
            return self.fresh(key, truth, space, rows), space

        def fresh(self, key, truth, space, count, *, training=False):
            inputs = jax.random.normal(key, (count, 2))
            labels = jnp.sign(inputs[:, 0])
            return fl.data.Batch(inputs, labels, labels, jnp.ones(count, bool))

    network = fl.networks.PlainNetwork(lambda key, d: jnp.zeros(d), lambda params, inputs: params @ inputs)
    algorithm = fl.algorithms.Descent(optax.sgd(0.1))
    base = fl.Experiment(Fixed(), network, algorithm, probes=[P.train_loss], steps=2)
    assert of(base) != of(base, seed=1)


def test_golden_numbers():
    """One tiny run in double precision, in inner products."""
    base = dataclasses.replace(
        within(TINY, "data", label_flip=0.2), probes=[P.train_loss, P.coefficients], precision=64, steps=20
    )
    assert base.representation == fl.Sees.PRODUCTS
    read = train_many([base], [0])
    found = [read["train_loss"][0], np.max(np.abs(read["gamma"])), np.max(np.abs(read["rho"]))]
    np.testing.assert_allclose(
        found,
        GOLDEN,
        rtol=1e-6,
        err_msg="The same experiment and seed give other numbers than before: "
        "if this changes on purpose, write the new numbers here.",
    )


GOLDEN = [0.4111722544679352, 0.4447145450138097, 0.724651269230109]


def test_a_mended_probe_has_new_addresses_and_a_stranger_none(monkeypatch):
    """An edit counts where its code is used: of a probe, of the loop; not of another probe, nor of a comment."""
    bare = source.bare_code

    def with_edited(file):
        monkeypatch.setattr(source, "bare_code", lambda path: bare(path) + "x" * (path == source.PACKAGE / file))
        source._fingerprint.cache_clear()
        return of(TINY)

    before = of(TINY)
    assert with_edited("probes/spectrum.py") == with_edited("algorithms/adaptive.py") == before
    assert with_edited("text.py") == before
    edits = ("probes/risk.py", "engine/loop.py", "algorithms/descent.py", "data/signal_noise.py", "core/space.py")
    assert len({before, *map(with_edited, edits)}) == 1 + len(edits)
    source._fingerprint.cache_clear()


def test_another_jax_or_device_has_other_addresses(monkeypatch):
    before = of(TINY)
    monkeypatch.setattr(jax, "__version__", "0.99.1")
    later = of(TINY)
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    assert len({before, later, of(TINY)}) == 3


def test_code_that_changed_under_a_process_is_not_stored_under_its_name(monkeypatch):
    """What this process computes is the old code's; the file already says the new."""
    source._fingerprint.cache_clear()
    monkeypatch.setitem(source._READ, source.PACKAGE / "engine" / "loop.py", 0)
    with pytest.raises(fl.InputError, match="start Python anew"):
        of(TINY)
    source._fingerprint.cache_clear()


def test_code_is_followed_to_where_it_is_defined(tmp_path, monkeypatch):
    """Through packages, renamings and modules in turn; comments, docstrings and type checkers' imports aside."""
    for name, text in {
        "__init__.py": "",
        "parts/__init__.py": "from featlab.parts.one import this as that\nfrom featlab.parts.two import other",
        "parts/one.py": "from typing import TYPE_CHECKING\nfrom featlab import deep\nif TYPE_CHECKING:\n"
        "    from featlab.parts import other\nthis = deep.number",
        "parts/two.py": "other = 2",
        "deep.py": "number = 1",
        "user.py": "from featlab.parts import that",
    }.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.setattr(source, "PACKAGE", tmp_path)
    source._imports.cache_clear()
    used = source.used_by(["featlab.user"])
    assert [str(file.relative_to(tmp_path)) for file in used] == ["deep.py", "parts/one.py", "user.py"]
    code = source.bare_code(tmp_path / "deep.py")
    (tmp_path / "deep.py").write_text('"""Words."""\nnumber = 1  # a comment')
    assert source.bare_code(tmp_path / "deep.py") == code
    (tmp_path / "deep.py").write_text("number = 2")
    assert source.bare_code(tmp_path / "deep.py") != code
    source._imports.cache_clear()
