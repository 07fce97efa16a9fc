r"""What one head of softmax attention makes of inputs in which one token is the signal.

Once trained, every query of a training input attends to its preferred token. A new input has fresh noise, whose
queries and keys nothing has been learnt about: its noise tokens attend uniformly, and only the signal's query
goes to the signal. Derived here, for a small start; Jiang, Huang, Zhang, Suzuki and Nie (2024) have the setting.
"""

from __future__ import annotations

from featlab.core.validation import InputError


def fresh_exponent(tokens: int) -> float:
    r"""The output on new inputs over that on training inputs, and with it the exponent of the test loss.

    $$\frac1L \Bigl(1 + \frac{L-1}{L}\Bigr), \qquad e^{L_D} - 1 = (e^\varepsilon - 1)^{\text{that}}$$

    An output is a mean over the L queries. The signal's sees all of the signal's value, the others a share 1/L.
    The logistic loss of an output f has $e^{L} - 1 = e^{-f}$.
    """
    tokens = _tokens("fresh_exponent", tokens)
    return (1 + (tokens - 1) / tokens) / tokens


def other_score(tokens: int, faster: float) -> float:
    r"""The score of another token over that of the preferred one, $-1 / ((L-1) v)$.

    The gradient in the scores of one softmax sums to 0, so each of the others loses a share 1/(L-1) of what the
    preferred one gains; its key is learnt v times as slowly.
    """
    return -1 / ((_tokens("other_score", tokens) - 1) * faster)


def _tokens(function: str, tokens: int) -> int:
    if not tokens >= 2:
        raise InputError(f"{function}(tokens=) must be a number of at least 2, got {tokens!r}.")
    return tokens
