"""What a part of an experiment looks at: the one fact that says how coarsely a run may be represented."""

from enum import IntEnum


class Sees(IntEnum):
    """The finest thing that a part looks at, from coarse to fine; code that declares nothing sees coordinates.

    PRODUCTS: nothing but inner products, of weights, signals and noise vectors with one another, by the functions
    that data, network and problem have for them. A run may then be trained in products.

    VECTORS: whole vectors, weights or inputs, but in no frame: turning all of them by the same rotation turns the
    run and changes no number, and no d-vector comes from anywhere but the space. A run may then use `Span`.

    COORDINATES: the entries of vectors, or vectors of its own; a run then needs `Ambient`.
    """

    PRODUCTS = 0
    VECTORS = 1
    COORDINATES = 2
