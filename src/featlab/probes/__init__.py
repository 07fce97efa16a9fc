"""What is read off a run, and when."""

from featlab.probes._probe import Probe as Probe
from featlab.probes._probe import Variable as Variable
from featlab.probes._probe import View as View
from featlab.probes._probe import as_probe as as_probe
from featlab.probes._probe import probe as probe
from featlab.probes.clocks import above as above
from featlab.probes.clocks import at_end as at_end
from featlab.probes.clocks import below as below
from featlab.probes.clocks import evenly as evenly
from featlab.probes.clocks import every as every
from featlab.probes.clocks import first as first
from featlab.probes.clocks import geometric as geometric
from featlab.probes.clocks import throughout as throughout
from featlab.probes.clocks import until as until
from featlab.probes.coefficients import coefficient_bounds as coefficient_bounds
from featlab.probes.coefficients import coefficients as coefficients
from featlab.probes.coefficients import products as products
from featlab.probes.recursion import coefficients_by_recursion as coefficients_by_recursion
from featlab.probes.risk import clean_noisy_split as clean_noisy_split
from featlab.probes.risk import margins as margins
from featlab.probes.risk import test_error as test_error
from featlab.probes.risk import test_loss as test_loss
from featlab.probes.risk import train_error as train_error
from featlab.probes.risk import train_loss as train_loss
from featlab.probes.risk import weight_norms as weight_norms
from featlab.probes.running import AbstractRunning as AbstractRunning
