"""What is minimised."""

from featlab.objectives._objective import AbstractObjective as AbstractObjective
from featlab.objectives._objective import Supervised as Supervised
from featlab.objectives._objective import as_objective as as_objective
from featlab.objectives.losses import logistic as logistic
from featlab.objectives.losses import squared as squared
