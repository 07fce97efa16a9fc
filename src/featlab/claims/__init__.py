"""Theorems as claims: one file each, found by walking this folder."""

from featlab.claims._claim import Assumption as Assumption
from featlab.claims._claim import Claim as Claim
from featlab.claims._claim import Lab as Lab
from featlab.claims._claim import Size as Size
from featlab.claims._find import find_claim as find_claim
from featlab.claims._find import find_claims as find_claims
from featlab.claims._judge import Check as Check
from featlab.claims._judge import agrees as agrees
from featlab.claims._judge import bounded_by as bounded_by
from featlab.claims._judge import exceeds as exceeds
from featlab.claims._judge import identity as identity
from featlab.claims._judge import scales_as as scales_as
from featlab.claims._judge import switches_at as switches_at
from featlab.claims._picture import Picture as Picture
from featlab.claims._picture import along_the_way as along_the_way
