"""Slips in the talks and notes that featlab starts from, and how it reads them where they are silent.

One file for each slip, with the check that decides it; readings are a list.
"""

from featlab.errata._erratum import Erratum as Erratum
from featlab.errata._find import find_errata as find_errata
from featlab.errata._readings import READINGS as READINGS
from featlab.errata._readings import SilentPoint as SilentPoint
from featlab.errata._sources import HOW_READ as HOW_READ
