"""Where inputs and labels come from, one family a file."""

from featlab.core.parts import gather
from featlab.data._data import AbstractDataModel as AbstractDataModel
from featlab.data._data import AbstractVectorModel as AbstractVectorModel
from featlab.data._data import Batch as Batch
from featlab.data._data import Signals as Signals
from featlab.data.batches import AbstractBatching as AbstractBatching
from featlab.data.batches import Minibatches as Minibatches
from featlab.data.batches import Stream as Stream
from featlab.data.concepts import ConceptPrompts as ConceptPrompts
from featlab.data.concepts import Concepts as Concepts
from featlab.data.images import DigitPair as DigitPair
from featlab.data.images import Images as Images
from featlab.data.images import Pair as Pair
from featlab.data.images import cifar10 as cifar10
from featlab.data.images import digits as digits
from featlab.data.images import mnist as mnist
from featlab.data.low_rank import product as product
from featlab.data.low_rank import sine_and_square as sine_and_square
from featlab.data.low_rank import two_squares as two_squares
from featlab.data.low_rank import two_stairs as two_stairs
from featlab.data.modalities import AbstractPairs as AbstractPairs
from featlab.data.modalities import AugmentedPairs as AugmentedPairs
from featlab.data.modalities import Modalities as Modalities
from featlab.data.multi_index import AbstractIndexModel as AbstractIndexModel
from featlab.data.multi_index import MultiIndex as MultiIndex
from featlab.data.multi_index import SingleIndex as SingleIndex
from featlab.data.parities import Relevant as Relevant
from featlab.data.parities import SparseParity as SparseParity
from featlab.data.patterns import PatternDictionary as PatternDictionary
from featlab.data.patterns import Patterns as Patterns
from featlab.data.prompts import FeatureTasks as FeatureTasks
from featlab.data.prompts import FeatureTeacher as FeatureTeacher
from featlab.data.regression import LinearRegression as LinearRegression
from featlab.data.regression import power_law as power_law
from featlab.data.regression import spiked as spiked
from featlab.data.signal_noise import SignalNoise as SignalNoise
from featlab.data.sparse import SparseSignalNoise as SparseSignalNoise
from featlab.data.sparse_coding import Dictionary as Dictionary
from featlab.data.sparse_coding import SparseCoding as SparseCoding
from featlab.data.tokens import SignalTokens as SignalTokens
from featlab.data.xor import XorSignalNoise as XorSignalNoise

gather(__name__, globals())
del gather
