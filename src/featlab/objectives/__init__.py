"""What is minimised."""

from featlab.core.parts import gather
from featlab.objectives._objective import AbstractObjective as AbstractObjective
from featlab.objectives._objective import Supervised as Supervised
from featlab.objectives._objective import as_objective as as_objective
from featlab.objectives.contrastive import InfoNCE as InfoNCE
from featlab.objectives.denoising import Denoising as Denoising
from featlab.objectives.in_context import InContextRisk as InContextRisk
from featlab.objectives.losses import hinge as hinge
from featlab.objectives.losses import logistic as logistic
from featlab.objectives.losses import squared as squared
from featlab.objectives.profile_ridge import ProfileRidge as ProfileRidge
from featlab.objectives.profile_ridge import degrees_of_freedom as degrees_of_freedom

gather(__name__, globals())
del gather
