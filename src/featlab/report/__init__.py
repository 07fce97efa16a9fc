"""What a person sees of runs and claims: tables, figures and files."""

from featlab.report._atlas import write_atlas as write_atlas
from featlab.report._claims import cite as cite
from featlab.report._claims import list_claims as list_claims
from featlab.report._claims import show_claim as show_claim
from featlab.report._claims import verify_claims as verify_claims
from featlab.report._comparisons import compare_file as compare_file
from featlab.report._comparisons import print_comparison as print_comparison
from featlab.report._meters import meter_file as meter_file
from featlab.report._runs import print_summary as print_summary
from featlab.report._runs import run_file as run_file
from featlab.report._runs import write_figures as write_figures
from featlab.report._sweeps import sweep_file as sweep_file
