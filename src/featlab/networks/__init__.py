"""The hypothesis classes."""

from featlab.networks._network import AbstractNetwork as AbstractNetwork
from featlab.networks._network import AbstractProductNetwork as AbstractProductNetwork
from featlab.networks._network import EquinoxNetwork as EquinoxNetwork
from featlab.networks._network import PlainNetwork as PlainNetwork
from featlab.networks.activations import leaky_relu as leaky_relu
from featlab.networks.activations import relu as relu
from featlab.networks.activations import relu_power as relu_power
from featlab.networks.two_layer_cnn import TwoLayerCNN as TwoLayerCNN
