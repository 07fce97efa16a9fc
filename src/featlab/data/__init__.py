"""Where inputs and labels come from, one family a file."""

from featlab.data._data import AbstractDataModel as AbstractDataModel
from featlab.data._data import AbstractVectorModel as AbstractVectorModel
from featlab.data._data import Batch as Batch
from featlab.data._data import Signals as Signals
from featlab.data.batches import AbstractBatching as AbstractBatching
from featlab.data.batches import Minibatches as Minibatches
from featlab.data.batches import Stream as Stream
from featlab.data.concepts import ConceptPrompts as ConceptPrompts
from featlab.data.concepts import Concepts as Concepts
from featlab.data.modalities import AbstractPairs as AbstractPairs
from featlab.data.modalities import AugmentedPairs as AugmentedPairs
from featlab.data.modalities import Modalities as Modalities
from featlab.data.multi_index import AbstractIndexModel as AbstractIndexModel
from featlab.data.multi_index import MultiIndex as MultiIndex
from featlab.data.multi_index import SingleIndex as SingleIndex
from featlab.data.prompts import FeatureTasks as FeatureTasks
from featlab.data.prompts import FeatureTeacher as FeatureTeacher
from featlab.data.regression import LinearRegression as LinearRegression
from featlab.data.regression import power_law as power_law
from featlab.data.regression import spiked as spiked
from featlab.data.signal_noise import SignalNoise as SignalNoise
from featlab.data.sparse import SparseSignalNoise as SparseSignalNoise
from featlab.data.tokens import SignalTokens as SignalTokens
from featlab.data.xor import XorSignalNoise as XorSignalNoise
