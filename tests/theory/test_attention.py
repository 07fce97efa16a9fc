"""One head of attention on new inputs: the closed forms, against the softmax itself."""

import numpy as np
import pytest

import featlab as fl
from featlab.theory import attention as theory


@pytest.mark.parametrize("tokens", [2, 4, 7])
def test_new_noise_that_attends_uniformly_leaves_this_share_of_the_output(tokens):
    scores = np.zeros((tokens, tokens))  # (query, key), of a new input; the first token is the signal
    scores[0, 0] = 60.0
    shares = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    values = np.eye(tokens)[0]  # of a training input, whose queries all attend to the signal, the output is 1
    share = (shares @ values).mean()
    np.testing.assert_allclose(theory.fresh_exponent(tokens), share, rtol=1e-12)
    outputs = np.array([3.0, 6.0])
    training, test = (np.log1p(np.exp(-f)) for f in (outputs, share * outputs))
    exponent = np.diff(np.log(np.expm1(test))) / np.diff(np.log(np.expm1(training)))
    np.testing.assert_allclose(exponent, theory.fresh_exponent(tokens), rtol=1e-12)


def test_of_four_tokens_it_is_seven_sixteenths():
    assert theory.fresh_exponent(4) == 7 / 16


def test_the_scores_that_do_not_win_share_its_gain_at_their_own_speed():
    """A step along the gradient of a softmax's share, through keys of two speeds, from even scores."""
    tokens, faster = 4, 5.0
    share = np.full(tokens, 1 / tokens)
    gradient = share[0] * (np.eye(tokens)[0] - share)
    step = gradient * np.where(np.arange(tokens) == 0, faster, 1.0)
    np.testing.assert_allclose(step[1:] / step[0], theory.other_score(tokens, faster), rtol=1e-12)


def test_one_token_is_refused():
    with pytest.raises(fl.InputError, match="fresh_exponent"):
        theory.fresh_exponent(1)
