"""What the theory predicts: pure functions of numbers, in float64, without a simulation."""

from featlab.theory import signal_noise as signal_noise
