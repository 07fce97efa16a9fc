"""A user's own activation, data model, network, objective, algorithm and probe run with no registration."""

import dataclasses
import functools
import warnings

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import featlab as fl
from featlab import testing


def softplus_cubed(z):
    return jax.nn.softplus(z) ** 3


class ThreePatches(fl.data.AbstractVectorModel):
    """A signal patch between two noise patches."""

    n: int
    d: float
    strength: float

    signal_count = 1
    noise_count = 2
    signed_by_class = True

    def signals(self, space):
        return jnp.eye(1), jnp.array([self.strength])

    def noise_length(self, space):
        return space.length(0.1)

    def noise_off(self):
        return True

    def toss(self, key, training):
        label = jax.random.rademacher(key, (), float)
        return label, label, None

    def compose(self, clean_label, coins, signals, noise):
        return noise[0], clean_label * signals[0], noise[1]

    @classmethod
    def examples(cls):
        return (cls(4, 60.0, 1.0),)


class Ring(fl.data.AbstractDataModel):
    """Inputs on a circle, labelled by their side: nothing of featlab's own but the batch."""

    n: int
    d: float = 2.0

    def draw(self, key, truth, space, rows):
        return self.fresh(key, truth, space, rows), space

    def fresh(self, key, truth, space, count, *, training=False):
        angle = jax.random.uniform(key, (count,), maxval=2 * np.pi)
        inputs = jnp.stack([jnp.cos(angle), jnp.sin(angle)], axis=1)
        labels = jnp.sign(inputs[:, 0])
        return fl.data.Batch(inputs, labels, labels, jnp.arange(count) < count)


class Perceptron(fl.networks.AbstractNetwork):
    """Tanh units of the user's own."""

    width: int

    def init(self, key, space):
        first, second = jax.random.split(key)
        head = jax.random.normal(second, (self.width,)) / self.width
        return (jax.random.normal(first, (self.width, 2)), head), space

    def __call__(self, params, inputs):
        weights, head = params
        return head @ jnp.tanh(weights @ inputs)


def perceptron(key, d):
    return eqx.nn.MLP(d, "scalar", 8, 1, key=key)


class Lazy(fl.algorithms.AbstractAlgorithm):
    """Steps only every other time."""

    rate: float

    def init(self, key, task):
        return fl.algorithms.State(task.start, jnp.zeros((), int))

    def step(self, key, state, task):
        value, gradient = task.value_and_grad(state.params, task.batch(key, state.step))
        rate = jnp.where(state.step % 2 == 0, self.rate, 0.0)
        params = jax.tree.map(lambda p, g: p - rate * g, state.params, gradient)
        return fl.algorithms.State(params, state.step + 1), fl.algorithms.Info(value)


class MeanOfHoldout(fl.algorithms.AbstractAlgorithm):
    """Sets every filter to the mean input of a set it was not trained on: one step, no gradient."""

    sees = fl.Sees.VECTORS
    holdouts = 2

    def init(self, key, task):
        return fl.algorithms.State(task.start, jnp.zeros((), int))

    def step(self, key, state, task):
        one, two = task.holdout(0), task.holdout(1)
        total = sum(jnp.sum(jnp.where(b.mask[:, None, None], b.inputs, 0), axis=(0, 1)) for b in (one, two))
        mean = total / (one.inputs.shape[1] * (jnp.sum(one.mask) + jnp.sum(two.mask)))
        filters = jnp.broadcast_to(mean, state.params.filters.shape)
        params = eqx.tree_at(lambda p: p.filters, state.params, filters)
        return fl.algorithms.State(params, state.step + 1), fl.algorithms.Info(jnp.zeros(()))


def squared_start_distance(view):
    return jnp.sum((view.weights - view.start_weights) ** 2, axis=1)


def experiment(**changes):
    base = dict(
        data=fl.data.SignalNoise(n=8, d=200, snr=0.5, noise_scale=200**-0.5),
        network=fl.networks.TwoLayerCNN(width=3, init_scale=0.1),
        algorithm=fl.algorithms.GradientDescent(0.5),
        probes=[fl.probes.train_loss],
        steps=20,
    )
    return fl.Experiment(**{**base, **changes})


def test_own_activation():
    network = fl.networks.TwoLayerCNN(width=3, activation=softplus_cubed, init_scale=0.1)
    history = fl.run(experiment(network=network), seeds=2)
    assert history.attrs["space"] == "Span" and (history.train_loss[:, -1] < history.train_loss[:, 0]).all()
    assert fl.rebuild(history.attrs["experiment"]).network.activation is softplus_cubed


@pytest.mark.parametrize("activation", [functools.partial(jax.nn.leaky_relu, negative_slope=0.2), lambda z: z**2])
def test_an_activation_that_cannot_be_written_down_still_runs(activation):
    network = fl.networks.TwoLayerCNN(width=3, activation=activation, init_scale=0.1)
    history = fl.run(experiment(network=network, steps=2), seeds=1)
    with pytest.raises(fl.InputError, match="only the code that made it|import the module"):
        fl.rebuild(history.attrs["experiment"])


def test_a_probe_under_another_name_is_not_passed_off_as_the_function():
    moved = fl.probes.probe(sees=fl.Sees.VECTORS, moved=fl.probes.Variable("row", "m", "movement"))(
        squared_start_distance
    )
    with pytest.raises(fl.InputError, match="only the code that made it"):
        fl.rebuild(fl.run(experiment(probes=[moved], steps=1), seeds=1).attrs["experiment"])
    plain = experiment(probes=[squared_start_distance])
    assert fl.rebuild(fl.run(plain, seeds=1).attrs["experiment"]) == plain


@pytest.mark.slow
def test_padding_changes_nothing_with_holdouts():
    probes = [fl.probes.products, fl.probes.train_loss]
    base = experiment(algorithm=MeanOfHoldout(), steps=1, probes=probes, precision=64, space=fl.Span)
    for name in ("signal_product", "noise_product", "train_loss"):
        np.testing.assert_allclose(fl.run(base, [3])[name], fl.run(base, [3], rows=13)[name], atol=1e-9)
    testing.check_span(testing.example_experiment(algorithm=MeanOfHoldout()), steps=1)


def test_outputs_of_the_wrong_shape_are_refused():
    def one_column(weights, inputs):
        return jnp.sum(inputs @ weights, keepdims=True)

    network = fl.networks.PlainNetwork(lambda key, d: jnp.zeros(d), one_column)
    with pytest.raises(fl.InputError, match="one number for each label"):
        fl.run(experiment(network=network, objective=lambda f, y: (f - y) ** 2), seeds=1)


@pytest.mark.slow
def test_own_vector_model_gets_everything():
    probes = [
        fl.probes.coefficients,
        fl.probes.coefficients_by_recursion,
        fl.probes.test_error,
        fl.probes.train_loss,
    ]
    own = experiment(data=ThreePatches(8, 1e7, 1.0), probes=probes, precision=64)
    history = fl.run(own, seeds=2)
    assert history.attrs["space"] == "Span"
    assert history.rho.dims == ("seed", "step", "class", "filter", "sample", "vector")
    gap = abs(history.rho - history.rho_recursion).max() / abs(history.rho).max()
    assert gap < 1e-12 and history.residual.max() < 1e-14
    testing.check_data_model(ThreePatches(4, 60.0, 1.0))
    testing.check_rotation(testing.example_experiment(data=ThreePatches(4, 60.0, 1.0)))
    small = testing.example_experiment(data=ThreePatches(4, 60.0, 1.0), probes=[fl.probes.coefficients])
    assert dataclasses.replace(small, space=None).representation == fl.Sees.PRODUCTS
    testing.check_products(small)


@pytest.mark.parametrize(
    "network", [Perceptron(8), pytest.param(fl.networks.EquinoxNetwork(perceptron), marks=pytest.mark.slow)]
)
def test_own_data_model_and_own_network(network):
    own = experiment(
        data=Ring(40), network=network, probes=[fl.probes.train_loss, fl.probes.test_error], steps=300
    )
    history = fl.run(own, seeds=3)
    assert history.attrs["space"] == "Ambient" and (history.test_error[:, -1] < 0.15).all()


def test_plain_functions_make_a_network():
    (plain,) = fl.networks.PlainNetwork.examples()
    history = fl.run(experiment(network=plain, steps=50), seeds=2)
    assert history.attrs["space"] == "Ambient" and (history.train_loss[:, -1] < history.train_loss[:, 0]).all()


def test_own_algorithm_counts_its_steps():
    base = dict(space=fl.Ambient, precision=64)
    lazy = fl.run(experiment(algorithm=Lazy(0.5), steps=20, **base), seeds=2)
    plain = fl.run(experiment(steps=10, **base), seeds=2)
    np.testing.assert_allclose(lazy.train_loss[:, -1], plain.train_loss[:, -1], atol=1e-12)


@pytest.mark.slow
def test_holdouts_are_independent_sets_of_the_same_law():
    """The mean of 32 patches, half of them noise of length one, meets training noise as N(0, 16/32^2/d)."""
    base = dict(algorithm=MeanOfHoldout(), steps=1, probes=[fl.probes.products.on(fl.probes.at_end)])
    data = fl.data.SignalNoise(n=8, d=100, snr=0.0, noise_scale=0.1)
    products = []
    for space in (fl.Span, fl.Ambient):
        history = fl.run(experiment(data=data, space=space, **base), seeds=200)
        values = history.noise_product.isel({"class": 0, "filter": 0}).values
        assert abs(values.mean()) < 4 * values.std() / values.size**0.5  # the training set would give 1/16
        products.append(values.std())
    np.testing.assert_allclose(products, (16 / 32**2 / 100) ** 0.5, rtol=0.1)
    with pytest.raises(fl.InputError, match="an algorithm's `holdouts` must say how many"):
        Greedy = type("Greedy", (MeanOfHoldout,), {"holdouts": 1, "__module__": __name__})
        fl.run(experiment(data=data, **{**base, "algorithm": Greedy()}), seeds=1)


def test_a_plain_function_is_a_probe():
    history = fl.run(experiment(probes=[squared_start_distance]), seeds=2)
    assert history.squared_start_distance.shape == (2, 21, 6) and history.attrs["space"] == "Ambient"
    assert (history.squared_start_distance[:, -1] > 0).any()


@pytest.mark.slow
def test_own_probe_with_names_keeps_the_span():
    moved = fl.probes.probe(sees=fl.Sees.VECTORS, moved=fl.probes.Variable("row", r"\|w - w_0\|^2", "movement"))(
        squared_start_distance
    )
    history = fl.run(experiment(probes=[moved]), seeds=2)
    assert history.attrs["space"] == "Span" and history.moved.dims == ("seed", "step", "row")
    testing.check_probe(moved)
    testing.check_rotation(testing.example_experiment(probes=(moved,)))


def test_own_loss():
    def hinge(outputs, labels):
        return jnp.maximum(0.0, 1 - labels * outputs)

    history = fl.run(experiment(objective=hinge, steps=200), seeds=2)
    assert (history.train_loss[:, -1] < history.train_loss[:, 0] - 0.05).all()


def test_a_probe_of_coefficients_says_what_it_needs():
    with pytest.raises(fl.InputError, match="products needs data such as .*SignalNoise, got Ring"):
        fl.run(experiment(data=Ring(10), network=Perceptron(8), probes=[fl.probes.products]), seeds=1)


def test_the_recursion_says_what_it_needs():
    adam = fl.algorithms.Descent(optax.adam(0.1))
    with pytest.raises(fl.InputError, match="needs linear descent"):
        fl.run(experiment(algorithm=adam, probes=[fl.probes.coefficients_by_recursion]), seeds=1)


class Dimmed(fl.algorithms.AbstractDescent):
    """Descent that changes what it sees."""

    share: float = 0.5

    @property
    def transformation(self):
        return optax.scale(-0.5)

    def batch(self, key, step, task):
        batch = super().batch(key, step, task)
        return eqx.tree_at(lambda b: b.inputs, batch, self.share * batch.inputs)


@pytest.mark.slow
def test_an_algorithm_that_changes_inputs_trains_on_the_changed_ones():
    """Where inputs are put together from their products, a change of them would go unseen."""
    network = fl.networks.TwoLayerCNN(width=2, init_scale=0.1)
    data = fl.data.SignalNoise(n=5, d=30, snr=0.5)
    for share, learns in ((1.0, True), (0.0, False)):
        made = fl.Experiment(data, network, Dimmed(share), probes=[fl.probes.train_loss], steps=5)
        history = fl.run(made, [0], progress=False)
        assert (float(history.train_loss[0, -1]) < float(history.train_loss[0, 0]) - 1e-3) == learns


# ---- code that fails is answered with the part, the line and the last word of JAX


def plain(**changes):
    parts = {
        "data": fl.data.SignalNoise(n=4, d=1e4, snr=0.5),
        "network": fl.networks.TwoLayerCNN(width=2),
        "algorithm": fl.algorithms.GradientDescent(0.1),
        "probes": [fl.probes.train_loss],
        "steps": 2,
    }
    return fl.Experiment(**(parts | changes))


def answer(make, verb=fl.run):
    """The one sentence that a run ends in."""
    with pytest.raises(fl.InputError) as caught:
        verb(make())
    said = str(caught.value)
    assert len(said) < 300 and "\n" not in said
    return said


def no_such_thing(view):
    return view.nothing


def asks_python(view):
    return 1.0 if view.step > 3 else 0.0


def by_zero(outputs, labels):
    return 1 / 0


def own_activation(function):
    return lambda: plain(network=fl.networks.TwoLayerCNN(width=2, activation=function))


class Drawn(fl.data.AbstractDataModel):
    """Draws whatever it is told to."""

    n: int = 4
    d: float = 2.0
    fault: str = eqx.field(static=True, default="")

    def draw(self, key, truth, space, rows):
        batch = self.fresh(key, truth, space, rows)
        if self.fault == "no mask":
            batch = fl.data.Batch(batch.inputs, batch.labels, batch.labels, None)
        return ([batch.inputs], space) if self.fault == "list" else (batch, space)

    def fresh(self, key, truth, space, count, *, training=False):
        inputs = jax.random.normal(key, (count, 2)) * (jnp.nan if self.fault == "nan" else 1)
        labels = jnp.where(jnp.arange(count) % 2 == 0, 1.0, 0.0 if self.fault == "0 and 1" else -1.0)
        return fl.data.Batch(inputs, labels, labels, jnp.ones(count, bool))


def drawn(fault):
    network = fl.networks.PlainNetwork(lambda key, d: jnp.zeros(2), lambda params, inputs: params @ inputs)
    return plain(data=Drawn(fault=fault), network=network, algorithm=fl.algorithms.Descent(optax.sgd(0.1)))


@pytest.mark.parametrize(
    "make, words",
    [
        (lambda: plain(probes=[no_such_thing]), "the probe no_such_thing fails at line"),
        (lambda: plain(probes=[asks_python]), "write jnp.where for `if`"),
        (lambda: plain(objective=by_zero), "Experiment.objective (by_zero) fails at line"),
        (lambda: plain(objective=lambda outputs: outputs), "takes 1 positional argument but 2 were given"),
        (lambda: plain(objective=lambda outputs, labels: None), "one number for each label: (4,), got NoneType"),
        (own_activation(lambda z: z if z > 0 else 0), "TwoLayerCNN.activation (<lambda>) fails at line"),
        (own_activation(np.tanh), "use jax.numpy for numpy"),
        (own_activation(lambda z: z.sum()), "from (3, 2) it makes ()"),
        (own_activation(fl.data.SignalNoise), "TwoLayerCNN.activation must be an activation"),
        (lambda: plain(probes=[fl.data.SignalNoise]), "A probe must be a function of a view"),
        (lambda: plain(probes=[fl.probes.test_error(count=0)]), "must be a whole number from 1"),
        (lambda: plain(network=by_zero), "Experiment.network must be a network"),
        (lambda: drawn("list"), "Drawn.draw must return a Batch and a space, got tuple"),
        (lambda: drawn("no mask"), "a Batch with a mask of that length, got none"),
        (lambda: drawn("nan"), "Drawn draws inputs that are not finite"),
        (lambda: drawn("0 and 1"), "logistic is for labels -1 and 1"),
        (
            lambda: plain(probes=[fl.probes.smallest_curvature]),
            "smallest_curvature needs a MeanFieldFeatures network",
        ),
    ],
)
def test_code_that_fails_is_answered_with_one_sentence(make, words):
    assert words in answer(make)


def test_so_it_is_in_sweeps_and_in_stores(tmp_path):
    def sweep(experiment):
        return fl.sweep(experiment, {"data.snr": [0.1, 0.2]}, out=tmp_path)

    assert "by_zero" in answer(lambda: plain(objective=by_zero), sweep)
    assert "asks_python" in answer(lambda: plain(probes=[asks_python]), sweep)


def test_the_whole_traceback_is_shown_to_those_who_ask(monkeypatch):
    monkeypatch.setenv("FEATLAB_TRACEBACK", "1")
    with pytest.raises(ZeroDivisionError):
        fl.run(plain(objective=by_zero))


def test_a_number_of_jax_is_a_number():
    model = fl.data.SignalNoise(n=4, d=1e4, snr=jnp.sqrt(0.25))
    assert model.snr == 0.5 and isinstance(model.snr, float)


def test_what_is_too_large_is_refused_before_anything_is_made():
    with pytest.raises(fl.InputError, match="40 GB"):
        fl.run(plain(data=fl.data.SignalNoise(n=100_000, d=1e9, snr=0.5)))
    for changes in ({"steps": 3_000_000_000}, {"steps": 10**25}):
        with pytest.raises(fl.InputError, match="at most 2,147,483,647"):
            plain(**changes)
    with pytest.raises(fl.InputError, match="from 1 to 10,000,000"):
        fl.run(plain(), 10**9)
    with pytest.raises(fl.InputError, match="float32"):
        fl.algorithms.GradientDescent(1e-300)


def test_options_of_a_probe_of_ones_own_are_left_as_they_are():
    """A usual value of 1 does not say that only whole numbers will do, nor one of 0 that none is negative."""

    @fl.probes.probe(shifted=fl.probes.Variable())
    def shifted(view, *, by=0, times: float = 1):
        return times * (view.step + by)

    history = fl.run(plain(probes=[shifted(by=-3, times=0.5).on(fl.probes.at_end)]))
    assert float(history.shifted[0]) == 0.5 * (2 - 3)
    assert fl.networks.hermite_series(jnp.array([0.0, 1.0])) == fl.networks.hermite_series((0, 1))


def test_a_warning_that_is_an_error_stays_what_it_is():
    from featlab.engine.dataset import Diverged

    with warnings.catch_warnings(action="error"), pytest.raises(Diverged):
        fl.run(plain(objective=fl.objectives.squared, algorithm=fl.algorithms.GradientDescent(1e20), steps=50))
