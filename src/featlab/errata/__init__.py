"""Slips in the talks and notes that featlab starts from: one file each, with the check that decides it."""

from featlab.errata._erratum import Erratum as Erratum
from featlab.errata._find import find_errata as find_errata
