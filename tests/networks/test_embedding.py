"""The patch encoder against its formula, and both of its roads against each other."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import featlab as fl
from featlab.networks.embedding import Encoders

WIDTH, D, SAMPLES = 3, 8, 4


@pytest.mark.parametrize("shared", [False, True])
def test_each_view_meets_its_own_encoder_on_both_roads(shared):
    with jax.enable_x64(True):
        rng = np.random.default_rng(3)
        network = fl.networks.PatchEncoder(width=WIDTH, shared=shared)
        filters = rng.standard_normal((network.encoders, WIDTH, D))
        inputs = rng.standard_normal((SAMPLES, 4, D))
        params = Encoders(jnp.asarray(filters))
        outputs = jax.vmap(network, in_axes=(None, 0))(params, jnp.asarray(inputs))
        by_hand = np.stack(
            [
                np.maximum(inputs[:, 2 * view : 2 * view + 2] @ filters[view % len(filters)].T, 0)
                for view in (0, 1)
            ],
            axis=1,
        )
        np.testing.assert_allclose(outputs, by_hand, rtol=1e-12)
        # The other road: products of all patches with all weights, the sample last.
        weights = np.asarray(network.weights(params))
        products = [(inputs[:, p] @ weights.T).T for p in range(4)]
        responses = network.respond(network.without_weights(params), list(map(jnp.asarray, products)))
        np.testing.assert_allclose(np.moveaxis(responses, -1, 0), by_hand, rtol=1e-12)
        summed = network.features(params, jnp.asarray(inputs[0]))
        np.testing.assert_allclose(summed, by_hand[0].sum(axis=1), rtol=1e-12)


def test_inputs_without_a_second_view_are_refused():
    network = fl.networks.PatchEncoder(width=WIDTH)
    with pytest.raises(fl.InputError, match="got 3 patches; use AugmentedPairs or Modalities"):
        network(Encoders(jnp.ones((2, WIDTH, D))), jnp.ones((3, D)))
