"""A linearised network is linear in its parameters, and the network itself near the start."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

import featlab as fl
from featlab.core.space import Ambient

NETWORKS = {
    "smooth": fl.networks.TwoLayer(width=5, activation=jnp.tanh, train_head=True),
    "centred": fl.networks.TwoLayer(width=5, activation=jnp.tanh, power=1.0, centred=True),
}


@pytest.mark.parametrize("name", ["smooth", pytest.param("centred", marks=pytest.mark.slow)])
def test_it_is_the_tangent(name):
    """f_0 + <grad f_0, shift> by reverse mode; twice the shift is twice the change; the origin has no slope."""
    network = NETWORKS[name]
    linear = fl.networks.Linearised(network)

    @jax.jit
    def read(key):
        params, _ = linear.init(key, Ambient(7.0))
        inputs = jax.random.normal(jax.random.fold_in(key, 1), (2, 7))
        flat, whole = ravel_pytree(params.origin)
        shift = jax.random.normal(jax.random.fold_in(key, 2), flat.shape)
        slope = ravel_pytree(jax.grad(network)(params.origin, inputs))[0]
        moved = [fl.networks.Tangent(whole(flat + s * shift), params.origin) for s in (1.0, 2.0, 1e-4)]
        own = jax.grad(linear)(moved[0], inputs)
        return (
            [linear(one, inputs) for one in moved],
            network(params.origin, inputs),
            network(moved[-1].moved, inputs),
            slope @ shift,
            [ravel_pytree(part)[0] for part in (own.moved, own.origin)],
            slope,
        )

    with jax.enable_x64(True):
        values, begun, near, change, (own, of_origin), slope = jax.device_get(read(jax.random.key(4)))
    np.testing.assert_allclose(values[:2], [begun + change, begun + 2 * change], rtol=1e-12)
    if not network.centred:  # what it keeps of its own start was moved here too
        np.testing.assert_allclose(near - begun, values[2] - begun, rtol=1e-2)
    np.testing.assert_allclose(own, slope, rtol=1e-12, atol=1e-15)  # whatever the shift
    assert not of_origin.any() and np.abs(slope).max() > 0


@pytest.mark.slow
def test_descent_of_the_squared_loss_is_the_kernel_recursion():
    """f(X) <- f(X) - (eta/n) K (f(X) - y) with the tangent kernel K of the start, for all steps."""
    network, eta, steps = NETWORKS["smooth"], 0.3, 4
    data = fl.data.SingleIndex(n=6, d=5, link=jnp.sin)

    @fl.probes.probe(outputs=fl.probes.Variable("sample", "f(x_i)", "outputs"))
    def outputs(view):
        return view.problem.outputs(view.params, view.training)

    @fl.probes.probe(kernel=fl.probes.Variable("sample other", "K", "tangent kernel of the start"))
    def kernel(view):
        def slope(x):
            return ravel_pytree(jax.grad(network)(view.params.origin, x))[0]

        slopes = jax.vmap(slope)(view.training.inputs)
        return slopes @ slopes.T

    @fl.probes.probe(targets=fl.probes.Variable("sample", "y_i", "labels"))
    def targets(view):
        return view.training.labels

    experiment = fl.Experiment(
        data=data,
        network=fl.networks.Linearised(network),
        objective=fl.objectives.squared,
        algorithm=fl.algorithms.GradientDescent(eta),
        probes=[outputs, kernel, targets],
        steps=steps,
        precision=64,
    )
    history = fl.run(experiment, seeds=1, progress=False).isel(seed=0)
    values, matrix, labels = (history[name].values for name in ("outputs", "kernel", "targets"))
    expected = values[0]
    for t in range(steps):
        expected = expected - eta / 6 * matrix[0] @ (expected - labels[0])
        np.testing.assert_allclose(values[t + 1], expected, rtol=1e-10)
    assert np.abs(values[-1] - values[0]).max() > 0.05
