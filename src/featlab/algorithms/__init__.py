"""How parameters change."""

from featlab.algorithms._algorithm import AbstractAlgorithm as AbstractAlgorithm
from featlab.algorithms._algorithm import Info as Info
from featlab.algorithms._algorithm import State as State
from featlab.algorithms.descent import AbstractDescent as AbstractDescent
from featlab.algorithms.descent import Descent as Descent
from featlab.algorithms.descent import GradientDescent as GradientDescent
from featlab.algorithms.gradient_flow import GradientFlow as GradientFlow
from featlab.algorithms.paced import PacedDescent as PacedDescent
from featlab.algorithms.then import Then as Then
