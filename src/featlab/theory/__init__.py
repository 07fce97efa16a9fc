"""What the theory predicts: pure functions of numbers, in float64, without a simulation."""

from featlab.theory import agop as agop
from featlab.theory import attention as attention
from featlab.theory import denoising as denoising
from featlab.theory import hermite as hermite
from featlab.theory import mean_field as mean_field
from featlab.theory import one_step as one_step
from featlab.theory import parities as parities
from featlab.theory import random_features as random_features
from featlab.theory import ridge as ridge
from featlab.theory import signal_noise as signal_noise
from featlab.theory import sparse_coding as sparse_coding
