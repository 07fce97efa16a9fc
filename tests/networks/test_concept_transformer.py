"""The concept transformer is the paper's formula, and its output layer moves at m times the rate."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import featlab as fl
from featlab.core.space import Ambient

D, HALF, WIDTH, LENGTH = 12, 6, 8, 5


@pytest.fixture(scope="module")
def case():
    """Weights of some size, a prompt, the output, and its gradient in what trains and in W_O itself."""
    network = fl.networks.ConceptTransformer(width=WIDTH, init_scale=1.0, output_scale=0.7, alignment=0.5)

    @eqx.filter_jit
    def read(key):
        params, _ = network.init(key, Ambient(float(D)))
        prompt = jax.random.normal(jax.random.fold_in(key, 1), (LENGTH + 1, D))

        def of_output(output):
            return network(eqx.tree_at(lambda p: p.scaled_output, params, output / jnp.sqrt(WIDTH)), prompt)

        output = network.output_weights(params)
        slopes = jax.grad(network)(params, prompt), jax.grad(of_output)(output)
        return params, prompt, output, network(params, prompt), network.attended(params, prompt), slopes

    with jax.enable_x64(True):
        return jax.device_get(read(jax.random.key(3)))


def test_it_is_the_formula_with_whole_matrices(case):
    """The slides' block matrices, on tokens of which the query knows no label."""
    params, prompt, output, value, attended, _ = case
    tokens = np.array(prompt)
    tokens[-1, HALF:] = 0
    nothing, one = np.zeros((HALF, HALF)), np.eye(HALF)
    query, key = (np.block([[part, nothing], [nothing, nothing]]) for part in (params.query, params.key))
    values = np.block([[nothing, nothing], [nothing, one]])
    scores = tokens[:-1] @ key.T @ query @ tokens[-1]
    shares = np.exp(scores) / np.exp(scores).sum()
    read = np.concatenate([np.zeros((WIDTH, HALF)), output], axis=1) @ (values @ (shares @ tokens[:-1]))
    signs = np.repeat([1.0, -1.0], WIDTH // 2)
    np.testing.assert_allclose(attended, shares, rtol=1e-12)
    np.testing.assert_allclose(value, signs / WIDTH @ np.maximum(read, 0), rtol=1e-12)
    assert (read > 0).any() and (read < 0).any()


def test_the_output_layer_moves_at_m_times_the_rate(case):
    _, _, _, _, _, (of_trained, of_output) = case
    moved = np.sqrt(WIDTH) * of_trained.scaled_output  # W_O = sqrt(m) U moves along sqrt(m) times U's slope
    np.testing.assert_allclose(moved, WIDTH * of_output, rtol=1e-12)
    assert np.abs(of_output).max() > 0 and np.abs(of_trained.query).max() > 0


def test_starts_are_of_one_size():
    def start(alignment, key):
        network = fl.networks.ConceptTransformer(width=4, init_scale=0.2, output_scale=0.1, alignment=alignment)
        params, _ = network.init(key, Ambient(80.0))
        return params, network.output_weights(params)

    keys = jax.random.split(jax.random.key(0), 50)
    both = jax.jit(jax.vmap(jax.vmap(start, in_axes=(None, 0)), in_axes=(0, None)))(jnp.array([1.0, 0.0]), keys)
    (params, output) = jax.device_get(both)
    for matrix in (params.query, params.key):
        np.testing.assert_allclose(matrix[0], np.broadcast_to(0.2 * np.eye(40), (50, 40, 40)), atol=1e-9)
        np.testing.assert_allclose(np.mean(matrix[1] ** 2) * 40, 0.2**2, rtol=0.02)
    assert not np.allclose(params.query[1], params.key[1])
    np.testing.assert_allclose(output[0].std(), 0.1, rtol=0.03)


def test_odd_sizes_are_refused():
    with pytest.raises(fl.InputError, match="width must be even, half of the neurons for each label, got 5"):
        fl.networks.ConceptTransformer(width=5)
    with pytest.raises(fl.InputError, match="needs an even d, half for inputs, half for labels, got 7"):
        fl.networks.ConceptTransformer(width=4).init(jax.random.key(0), Ambient(7.0))
