"""The hypothesis classes."""

from featlab.core.parts import gather
from featlab.networks._network import AbstractAttention as AbstractAttention
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
from featlab.networks.attention import Head as Head
from featlab.networks.attention import SoftmaxAttention as SoftmaxAttention
from featlab.networks.concept_transformer import ConceptTransformer as ConceptTransformer
from featlab.networks.concept_transformer import ConceptWeights as ConceptWeights
from featlab.networks.denoiser import Denoiser as Denoiser
from featlab.networks.denoiser import TiedWeights as TiedWeights
from featlab.networks.embedding import Encoders as Encoders
from featlab.networks.embedding import PatchEncoder as PatchEncoder
from featlab.networks.kernel_machine import Expansion as Expansion
from featlab.networks.kernel_machine import KernelMachine as KernelMachine
from featlab.networks.linear import AlignedLinear as AlignedLinear
from featlab.networks.linear import TwoLayerLinear as TwoLayerLinear
from featlab.networks.linearised import Linearised as Linearised
from featlab.networks.linearised import Tangent as Tangent
from featlab.networks.mean_field import MeanFieldFeatures as MeanFieldFeatures
from featlab.networks.mean_field import Particles as Particles
from featlab.networks.mlp import MLP as MLP
from featlab.networks.mlp import Stack as Stack
from featlab.networks.symmetric_relu import Neurons as Neurons
from featlab.networks.symmetric_relu import SymmetricReLU as SymmetricReLU
from featlab.networks.transformer import QueryKeyValue as QueryKeyValue
from featlab.networks.transformer import TwoLayerTransformer as TwoLayerTransformer
from featlab.networks.truncated_relu import BiasedNeurons as BiasedNeurons
from featlab.networks.truncated_relu import TruncatedReLU as TruncatedReLU
from featlab.networks.truncated_relu import truncated_relu as truncated_relu
from featlab.networks.two_layer import AbstractTwoLayer as AbstractTwoLayer
from featlab.networks.two_layer import RandomFeatures as RandomFeatures
from featlab.networks.two_layer import TwoLayer as TwoLayer
from featlab.networks.two_layer_cnn import TwoLayerCNN as TwoLayerCNN

gather(__name__, globals())
del gather
