"""Figures: a Dataset goes in, a matplotlib Figure comes out, drawn in one house style.

`save(figure, "name.svg")` writes it so that the same figure gives the same file.
"""

from featlab.plots._style import house_style as house_style
from featlab.plots._style import save as save
from featlab.plots.coefficients import coefficient_growth as coefficient_growth
from featlab.plots.comparison import comparison as comparison
from featlab.plots.comparison_diagrams import comparison_diagrams as comparison_diagrams
from featlab.plots.double_descent import double_descent as double_descent
from featlab.plots.exponents import exponents as exponents
from featlab.plots.losses import losses as losses
from featlab.plots.margins import margins as margins
from featlab.plots.meter import meter as meter
from featlab.plots.neuron_sets import neuron_strips as neuron_strips
from featlab.plots.phase_diagram import phase_diagram as phase_diagram
from featlab.plots.spectrum import spectrum as spectrum
from featlab.plots.staircase import staircase as staircase
from featlab.plots.verdict import verdict as verdict
