"""How parameters change."""

from featlab.algorithms._algorithm import AbstractAlgorithm as AbstractAlgorithm
from featlab.algorithms._algorithm import Info as Info
from featlab.algorithms._algorithm import State as State
from featlab.algorithms.adaptive import Adam as Adam
from featlab.algorithms.adaptive import SignDescent as SignDescent
from featlab.algorithms.birth_death import BirthDeath as BirthDeath
from featlab.algorithms.descent import AbstractDescent as AbstractDescent
from featlab.algorithms.descent import Descent as Descent
from featlab.algorithms.descent import GradientDescent as GradientDescent
from featlab.algorithms.feature_machine import RecursiveFeatureMachine as RecursiveFeatureMachine
from featlab.algorithms.feature_machine import as_it_is as as_it_is
from featlab.algorithms.feature_machine import largest_entry_one as largest_entry_one
from featlab.algorithms.feature_machine import mean_eigenvalue_one as mean_eigenvalue_one
from featlab.algorithms.giant_step import GiantStep as GiantStep
from featlab.algorithms.gradient_flow import GradientFlow as GradientFlow
from featlab.algorithms.langevin import AbstractParticleFlow as AbstractParticleFlow
from featlab.algorithms.langevin import Langevin as Langevin
from featlab.algorithms.langevin import WassersteinFlow as WassersteinFlow
from featlab.algorithms.layerwise import LayerwiseDescent as LayerwiseDescent
from featlab.algorithms.matrix_normalised import MatrixNormalisedDescent as MatrixNormalisedDescent
from featlab.algorithms.noisy import LabelNoiseDescent as LabelNoiseDescent
from featlab.algorithms.noisy import Mixup as Mixup
from featlab.algorithms.paced import PacedDescent as PacedDescent
from featlab.algorithms.ridge import Ridge as Ridge
from featlab.algorithms.ridge import ridge as ridge
from featlab.algorithms.ridge import ridge_path as ridge_path
from featlab.algorithms.sam import SAM as SAM
from featlab.algorithms.sam import Perturbation as Perturbation
from featlab.algorithms.then import Then as Then
from featlab.algorithms.thresholds import GrowingThresholds as GrowingThresholds
from featlab.core.parts import gather

gather(__name__, globals())
del gather
