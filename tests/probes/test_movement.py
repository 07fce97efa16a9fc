"""How far weights and tangent kernels move: closed forms, dense Jacobians, and networks of any kind."""

import equinox as eqx
import jax
import jax.flatten_util
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose

import featlab as fl
from featlab.core.space import Ambient
from featlab.probes import View, movement, tangent_kernel
from featlab.problem import PlainProblem, draw_run

N, D, ETA, STEPS = 9, 7, 0.05, 20
DATA = fl.data.SingleIndex(n=N, d=D, link=jnp.sin, label_noise=0.3)


def start(key, d):
    return jax.random.normal(key, (d,))


def linear(weights, inputs):
    return inputs[0] @ weights


def quadratic(weights, inputs):
    return (inputs[0] @ weights) ** 2 / 2


def module(key, d):
    return eqx.nn.Sequential([eqx.nn.Lambda(jnp.ravel), eqx.nn.MLP(d, "scalar", 5, 1, jnp.tanh, key=key)])


NETWORKS = {
    "linear": fl.networks.PlainNetwork(start, linear),
    "quadratic": fl.networks.PlainNetwork(start, quadratic),
    "equinox": fl.networks.EquinoxNetwork(module),
    "two-layer": fl.networks.TwoLayer(width=5, activation=jnp.tanh, train_head=True),
    "centred": fl.networks.TwoLayer(width=5, activation=jnp.tanh, centred=True),
}


def trained(network, steps, rows=N, rate=ETA):
    algorithm = fl.algorithms.GradientDescent(rate)

    @eqx.filter_jit
    def run():
        draw = draw_run(DATA, network, Ambient(float(D)), rows, 0, jax.random.key(3))
        task = PlainProblem(DATA, network, fl.objectives.as_objective(fl.objectives.squared, network), draw)
        state = algorithm.init(jax.random.key(0), task)
        state = jax.lax.fori_loop(
            0, steps, lambda i, state: algorithm.step(jax.random.key(0), state, task)[0], state
        )
        return View(state.params, jnp.array(steps), task, algorithm)

    with jax.enable_x64(True):
        return run()


@pytest.fixture(scope="module", params=NETWORKS)
def view(request):
    return trained(NETWORKS[request.param], STEPS)


def read(probe, view):
    with jax.enable_x64(True):
        return {name: float(value) for name, value in eqx.filter_jit(probe)(view).items()}


def at_start(view):
    return eqx.tree_at(lambda v: v.params, view, view.problem.start)


@pytest.mark.slow
def test_nothing_has_moved_at_the_start(view):
    assert set(read(movement, at_start(view)).values()) == {0.0}
    kernel = read(tangent_kernel, at_start(view))
    assert kernel["kernel_movement"] == 0
    assert_allclose(kernel["kernel_similarity"], 1, rtol=1e-12)


def dense(view, params):
    """Every derivative of every output, in one matrix; what never trains has none."""
    with jax.enable_x64(True):
        flat, unravel = jax.flatten_util.ravel_pytree(params)
        outputs = jax.jit(lambda flat: view.problem.outputs(unravel(flat), view.training))
        return np.asarray(jax.jacobian(outputs)(flat))


@pytest.mark.parametrize("samples", [100, 4])
def test_the_kernel_is_that_of_the_dense_jacobian(view, samples):
    found = read(tangent_kernel(samples=samples), view)
    now, then = (dense(view, params)[:samples] for params in (view.params, view.problem.start))
    now, then, y = now @ now.T, then @ then.T, np.asarray(view.training.labels)[:samples]
    size = np.linalg.norm
    assert_allclose(found["kernel_movement"], size(now - then) / size(then), atol=1e-10)
    assert_allclose(found["kernel_similarity"], np.sum(now * then) / size(now) / size(then), rtol=1e-10)
    assert_allclose(found["kernel_alignment"], y @ now @ y / size(now) / (y @ y), rtol=1e-10)
    assert 0 <= found["kernel_alignment"] <= 1


def test_weights_and_parameters_have_moved_by_their_definition(view):
    found = read(movement, view)
    if isinstance(view.problem.network, fl.networks.TwoLayer):
        # What a centred network keeps of its start is no parameter.
        rows = [(np.asarray(view.params.weights), np.asarray(view.problem.start.weights))]
        pairs = [*rows, (np.asarray(view.params.head), np.asarray(view.problem.start.head))]
    else:
        leaves = (map(np.asarray, jax.tree.leaves(params)) for params in (view.params, view.problem.start))
        pairs = list(zip(*leaves))
        rows = [
            (now.reshape(-1, now.shape[-1]), then.reshape(-1, now.shape[-1])) for now, then in pairs if now.ndim
        ]
    ratios = [np.linalg.norm(a - b) / np.linalg.norm(b) for now, then in rows for a, b in zip(now, then)]
    assert_allclose(found["weight_movement"], np.mean(ratios), rtol=1e-10)
    far = sum(np.sum((now - then) ** 2) for now, then in pairs)
    assert_allclose(found["total_movement"], np.sqrt(far / sum(np.sum(then**2) for _, then in pairs)), rtol=1e-10)
    assert found["total_movement"] > 1e-3


def test_a_linear_network_moves_and_its_kernel_does_not():
    """Descent in closed form: w_t - w* = (I - eta X'X/n)^t (w_0 - w*), w* being least squares."""
    view = trained(NETWORKS["linear"], STEPS)
    x, y = np.asarray(view.training.inputs[:, 0]), np.asarray(view.training.labels)
    w = np.asarray(view.problem.start)
    best = np.linalg.lstsq(x, y)[0]
    end = best + np.linalg.matrix_power(np.eye(D) - ETA * x.T @ x / N, STEPS) @ (w - best)
    found = read(movement, view)
    assert_allclose(found["weight_movement"], np.linalg.norm(end - w) / np.linalg.norm(w), rtol=1e-10)
    assert_allclose(found["total_movement"], found["weight_movement"], rtol=1e-12)
    kernel, gram = read(tangent_kernel, view), x @ x.T
    assert kernel["kernel_movement"] == 0
    assert_allclose(kernel["kernel_alignment"], y @ gram @ y / np.linalg.norm(gram) / (y @ y), rtol=1e-10)


def test_the_kernel_of_a_quadratic_network_in_closed_form():
    """f = <w, x>^2 / 2 has K = <w, x_i> <w, x_j> <x_i, x_j>: three times the weights, nine times the kernel."""
    still = trained(NETWORKS["quadratic"], 0)
    longer = eqx.tree_at(lambda v: v.params, still, 3.0 * np.asarray(still.params))
    found = read(tangent_kernel, longer)
    assert_allclose([found["kernel_movement"], found["kernel_similarity"]], [8, 1], rtol=1e-12)
    assert_allclose(read(movement, longer)["weight_movement"], 2, rtol=1e-12)
    x, y, w = np.asarray(still.training.inputs[:, 0]), np.asarray(still.training.labels), np.asarray(still.params)
    kernel = np.outer(x @ w, x @ w) * (x @ x.T)
    assert_allclose(found["kernel_alignment"], y @ kernel @ y / np.linalg.norm(kernel) / (y @ y), rtol=1e-10)


@pytest.mark.slow
def test_wide_networks_are_lazy_and_mean_fields_are_not():
    """At equal speed of the output: 16 times the width is a quarter of the way with N^-1/2, all of it with 1/N."""
    for power, ratio in ((0.5, 4), (1.0, 1)):
        moved = []
        for width in (20, 320):
            network = fl.networks.TwoLayer(width=width, activation=jnp.tanh, power=power, centred=True)
            view = trained(network, 50, rate=0.2 * width ** (2 * power - 1))
            moved.append(read(movement, view)["weight_movement"])
        assert_allclose(moved[0] / moved[1], ratio, rtol=0.35)


def test_padding_has_no_part_in_the_kernel():
    plain, padded = (trained(NETWORKS["two-layer"], STEPS, rows) for rows in (N, N + 3))
    for probe in (movement, tangent_kernel):
        expected = read(probe, plain)
        for name, value in read(probe, padded).items():
            assert_allclose(value, expected[name], rtol=1e-10)
