"""A network's linearisation in its parameters: what it would be if its features stayed those of the start."""

from typing import Any

import equinox as eqx
import jax

from featlab.core.sees import Sees
from featlab.core.validation import part
from featlab.networks._network import AbstractNetwork
from featlab.networks.activations import relu_power
from featlab.networks.truncated_relu import TruncatedReLU
from featlab.networks.two_layer_cnn import TwoLayerCNN


class Tangent(eqx.Module):
    r"""Parameters $\theta$ of a network that is linear in them, and $\theta_0$, which never trains."""

    moved: Any  # theta
    origin: Any  # theta_0


class Linearised(AbstractNetwork):
    r"""$f_{\mathrm{lin}}(x; \theta) = f(x; \theta_0) + \langle \nabla_\theta f(x; \theta_0), \theta - \theta_0
    \rangle$, $\theta_0$ being the start.

    Any network with the features of its tangent kernel, as fixed as they are many; the product is one `jax.jvp`.
    Jacot, Gabriel and Hongler (2018). A plain weight decay would also shrink $\theta_0$; that of
    `LayerwiseDescent` leaves it alone.
    """

    network: AbstractNetwork = part(AbstractNetwork, "a network")

    @classmethod
    def examples(cls):
        network = TwoLayerCNN(width=3, activation=relu_power(2), init_scale=0.1)
        return (cls(network), cls(TruncatedReLU(width=4, weights_scale=0.2, biases_scale=0.1)))

    @property
    def sees(self):
        return max(Sees.VECTORS, self.network.sees)

    @property
    def centred(self):
        """Whether its output is 0 at the start."""
        return getattr(self.network, "centred", False)

    @property
    def starts_first(self):
        return self.network.starts_first

    def vectors(self):
        return self.network.vectors()

    def init(self, key, space):
        start, space = self.network.init(key, space)
        return Tangent(start, start), space

    def __call__(self, params, inputs):
        origin = jax.lax.stop_gradient(params.origin)
        change = jax.tree.map(lambda moved, begun: moved - begun, params.moved, origin)
        value, slope = jax.jvp(lambda theta: self.network(theta, inputs), (origin,), (change,))
        return value + slope
