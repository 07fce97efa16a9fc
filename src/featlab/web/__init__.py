"""The playground: a page where a theorem's numbers are sliders, and a server that computes for it."""

from featlab.web._server import serve as serve
