"""Theorems as claims: one file each, found by walking this folder."""

from featlab.claims.cells import ratio_of_means as ratio_of_means
from featlab.claims.claim import Assumption as Assumption
from featlab.claims.claim import Claim as Claim
from featlab.claims.claim import not_judged as not_judged
from featlab.claims.claim import to as to
from featlab.claims.find import find_claim as find_claim
from featlab.claims.find import find_claims as find_claims
from featlab.claims.judge import Check as Check
from featlab.claims.lab import Lab as Lab
from featlab.claims.lab import Size as Size
from featlab.claims.picture import Picture as Picture
from featlab.claims.picture import along_the_way as along_the_way
from featlab.claims.verbs import at_least as at_least
from featlab.claims.verbs import at_most as at_most
from featlab.claims.verbs import equals as equals
from featlab.claims.verbs import identity as identity
from featlab.claims.verbs import scales_as as scales_as
from featlab.claims.verbs import switches_at as switches_at
