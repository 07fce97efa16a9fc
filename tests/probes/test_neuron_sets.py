"""Sets of neurons, purity and responses, on weights that were put there, against the definitions pair by pair."""

import dataclasses
import importlib
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr

import featlab as fl
from featlab.networks import Neurons
from featlab.probes import View
from featlab.problem import PlainProblem, draw_run
from featlab.theory.sparse_coding import linear_error

P = fl.probes
D, M, C1, C2 = 9, 60, 0.9, 0.2
CODING = fl.data.SparseCoding(n=4, d=D, sparsity=3, noise_scale=0.4, rotated=True)
EXPERIMENT = fl.testing.example_experiment(
    data=CODING, network=fl.networks.SymmetricReLU(width=M, init_scale=0.5), precision=32
)


@pytest.fixture(scope="module")
def read():
    """All probes, for weights given by their products with the atoms (in the sense of the votes)."""
    draw = jax.jit(
        lambda: draw_run(CODING, EXPERIMENT.network, EXPERIMENT.empty_space(), 4, 0, jax.random.key(5))
    )()
    truth = draw.truth

    @jax.jit
    def readings(products, threshold, scale):
        params = Neurons((products * truth.votes[None]) @ truth.atoms, jnp.full(M, threshold), scale)
        task = PlainProblem(CODING, EXPERIMENT.network, EXPERIMENT.bound_objective, draw)
        view = View(params, jnp.array(0), task, EXPERIMENT.algorithm)
        probes = [P.neuron_sets(c1=C1, c2=C2), P.set_counts(c1=C1, c2=C2), P.feature_purity, P.feature_responses]
        probes.append(P.sure_kept(c1=C1, c2=C2))
        return {k: v for one in (*probes, P.errors_beside_linear(count=4000)) for k, v in one(view).items()}

    start = np.asarray((draw.start.weights @ truth.atoms.T) * truth.votes[None])
    return start, lambda *numbers: jax.device_get(readings(*map(jnp.asarray, numbers)))


def sets(products, scale):
    """The definitions, pair by pair."""
    unit = scale**2 * np.log(D)
    potential = products**2 >= (C1 - C2) * unit
    sure = np.zeros_like(potential)
    for i, j in np.ndindex(*products.shape):
        others = all(not potential[i, k] for k in range(D) if k != j)
        sure[i, j] = products[i, j] > 0 and products[i, j] ** 2 >= (C1 + C2) * unit and others
    return sure, potential


def test_sets_and_their_counts_are_those_of_the_definitions(read):
    start, readings = read
    rng = np.random.default_rng(0)
    now, scale = 0.7 * start + 0.4 * rng.normal(size=(M, D)).astype(np.float32), 0.6
    found = readings(now, 0.0, scale)
    (sure, potential), (first, before) = sets(now, scale), sets(start, 0.5)
    np.testing.assert_array_equal(found["sure"], sure)
    np.testing.assert_array_equal(found["potential"], potential)
    assert 0 < (sure & first).sum() < first.sum() and sure.sum() > 3
    assert (found["sure_count"], found["potential_count"]) == (sure.sum(), potential.sum())
    np.testing.assert_allclose(found["retention"], (sure & first).sum() / first.sum(), rtol=1e-6)
    np.testing.assert_allclose(found["kept"], (sure & first).sum() / first.sum(), rtol=1e-6)
    became = sure & ~first
    assert 0 < (became & before).sum() < became.sum()
    np.testing.assert_allclose(found["promotion"], (became & before).sum() / became.sum(), rtol=1e-6)
    np.testing.assert_allclose(found["covered"], sure.any(axis=0).mean(), rtol=1e-6)


def test_purity_is_the_median_cosine_of_those_that_have_grown(read):
    products = np.full((M, D), 0.0, np.float32)
    products[:, 0], products[:20, 1] = 1e-3, 1e-3  # small and pure
    products[:7, 2], products[:7, 3] = 4.0, 3.0  # grown
    products[3:7, 3] = 0.0
    found = read[1](products, 0.0, 1.0)
    assert found["grown"] == 7
    np.testing.assert_allclose([found["purity"], found["purest"]], [1.0, 1.0], atol=1e-5)
    products[3:5, 3] = 3.0
    np.testing.assert_allclose(read[1](products, 0.0, 1.0)["purity"], 0.8, atol=1e-5)


def test_responses_are_thresholded_and_errors_are_those_of_networks_whose_errors_are_known(read):
    """One neuron for each atom: a sum of thresholded features, and without thresholds the linear model itself."""
    products = np.zeros((M, D), np.float32)
    products[:D] = 2 * np.eye(D)
    found = read[1](products, 0.0, 1.0)
    np.testing.assert_allclose(found["feature_response"], 2, rtol=1e-5)
    assert found["network_error"] == found["linear_error"]
    assert abs(found["linear_error"] - linear_error(D, 3, 0.4)) < 4 * np.sqrt(0.25 / 4000)
    deaf = read[1](products, 1.0, 1.0)
    np.testing.assert_allclose(deaf["feature_response"], 1, rtol=1e-5)
    assert deaf["network_error"] != deaf["linear_error"] == found["linear_error"]
    np.testing.assert_allclose(read[1](-products, 0.0, 1.0)["network_error"], 1 - found["linear_error"], atol=1e-6)
    assert read[1](0 * products, 0.0, 1.0)["network_error"] == 1  # says nothing
    products[4] *= -1
    np.testing.assert_allclose(read[1](products, 1.0, 1.0)["feature_response"][4], -1, rtol=1e-5)


def test_transitions_are_counted_where_they_happen():
    sure = np.zeros((1, 4, 3, 2), bool)
    sure[0, 1:, 0, 0] = sure[0, :2, 1, 1] = sure[0, 2, 2, 0] = True
    members = xr.DataArray(sure, dims=("seed", "step", "neuron", "atom"), coords={"step": [0, 10, 20, 40]})
    found = P.transitions(members).isel(seed=0)
    assert found.step.values.tolist() == [10, 20, 40]
    assert found.entered.values.tolist() == [1, 1, 0] and found.left.values.tolist() == [0, 1, 1]
    with pytest.raises(fl.InputError, match="over time"):
        P.transitions(members.isel(step=0, drop=True))


def test_strips_are_ordered_and_other_datasets_refused():
    from featlab.plots.neuron_sets import order

    levels = np.array([[0, 2, 1, 0, 2], [2, 1, 1, 0, 2]])  # step, neuron
    assert order(levels).tolist() == [4, 1, 0, 2]
    rng = np.random.default_rng(0)
    potential = rng.random((1, 5, 8, 3)) < 0.3
    dims = ("seed", "step", "neuron", "atom")
    history = xr.Dataset(
        {"sure": (dims, potential & (rng.random(potential.shape) < 0.5)), "potential": (dims, potential)}
    )
    history = history.assign_coords(step=[0, 1, 4, 9, 16])
    (axes,) = fl.plots.neuron_strips(history).axes
    drawn = axes.collections[0].get_array()
    assert drawn.shape == (int(potential.any(axis=(0, 1, 3)).sum()), 5) and set(np.unique(drawn)) == {0, 1, 2}
    with pytest.raises(fl.InputError, match="record the probe neuron_sets"):
        fl.plots.neuron_strips(history.drop_vars("sure"))
    with pytest.raises(fl.InputError, match="one seed"):
        fl.plots.neuron_strips(xr.concat([history, history], "seed"))


@pytest.mark.slow
def test_other_data_and_networks_are_refused():
    for parts, sentence in (
        ({"data": CODING}, "feature_purity needs a SymmetricReLU network, got TwoLayerCNN"),
        ({"network": EXPERIMENT.network}, "feature_purity needs SparseCoding data, got SignalNoise"),
    ):
        with pytest.raises(fl.InputError, match=sentence):
            fl.run(fl.testing.example_experiment(**parts, probes=(P.feature_purity,)), seeds=1, progress=False)


@pytest.mark.slow
def test_without_thresholds_no_neuron_is_pure_and_with_them_most_are():
    """The claim's setting, short and small."""
    from featlab.claims.theorems.allenzhu2020_sparse_coding import SparseFeatures

    one = SparseFeatures().experiment(25)
    linear = dataclasses.replace(
        one,
        network=dataclasses.replace(one.network, threshold=0.0),
        algorithm=dataclasses.replace(one.algorithm, share=0.0),
    )
    purest, none = (fl.run(kind, seeds=4, progress=False).purity.values for kind in (one, linear))
    assert (purest > 0.9).all() and (none < 0.6).all()


@pytest.mark.slow
def test_the_example_answers_a_wrong_number_in_one_sentence(monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(Path(__file__).parents[2] / "examples")
    with pytest.raises(fl.InputError):
        importlib.import_module("sparse_coding").main(tmp_path, 0)
