"""A meter for real networks: how far training moved one, what it learnt and what it memorised.

`meter(apply, params_before, params_after, data)` takes any JAX function, or a PyTorch module, and returns a
`Reading`: a table in a terminal, HTML in a notebook, and a figure with `featlab.plots.meter(reading)`.
"""

from featlab.metering._meter import meter as meter
from featlab.metering.reading import Reading as Reading
from featlab.metering.reading import Row as Row
from featlab.metering.reading import beside as beside
