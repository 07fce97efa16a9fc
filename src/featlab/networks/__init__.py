"""The hypothesis classes."""

from featlab.networks._network import AbstractNetwork as AbstractNetwork
from featlab.networks._network import AbstractProductNetwork as AbstractProductNetwork
from featlab.networks._network import EquinoxNetwork as EquinoxNetwork
from featlab.networks._network import PlainNetwork as PlainNetwork
from featlab.networks.activations import centred as centred
from featlab.networks.activations import erf as erf
from featlab.networks.activations import hermite_series as hermite_series
from featlab.networks.activations import identity as identity
from featlab.networks.activations import leaky_relu as leaky_relu
from featlab.networks.activations import relu as relu
from featlab.networks.activations import relu_power as relu_power
from featlab.networks.activations import shifted as shifted
from featlab.networks.linear import TwoLayerLinear as TwoLayerLinear
from featlab.networks.mean_field import MeanFieldFeatures as MeanFieldFeatures
from featlab.networks.mean_field import Particles as Particles
from featlab.networks.two_layer import AbstractTwoLayer as AbstractTwoLayer
from featlab.networks.two_layer import RandomFeatures as RandomFeatures
from featlab.networks.two_layer import TwoLayer as TwoLayer
from featlab.networks.two_layer_cnn import TwoLayerCNN as TwoLayerCNN
