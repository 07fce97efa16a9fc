"""What one run is about: the data, network and objective of one draw, as algorithms and probes see them.

An algorithm uses an `AbstractProblem`, a probe reads an `AbstractReadableProblem`; three final ones represent it:

    PlainProblem    weights as vectors, inputs whole
    LinearProblem   weights as vectors, inputs by the signals and noise they are made of
    GramProblem     weights by what they learnt of signals and noise, inputs by their inner products
"""

from featlab.problem.base import AbstractProblem as AbstractProblem
from featlab.problem.draw import Draw as Draw
from featlab.problem.draw import draw_run as draw_run
from featlab.problem.draw import unbatched as unbatched
from featlab.problem.draw import vector_model as vector_model
from featlab.problem.gram import GramProblem as GramProblem
from featlab.problem.gram import Learnt as Learnt
from featlab.problem.gram import in_products as in_products
from featlab.problem.linear import LinearProblem as LinearProblem
from featlab.problem.plain import PlainProblem as PlainProblem
from featlab.problem.readable import AbstractReadableProblem as AbstractReadableProblem
