"""Readings: what is assumed where a source is silent. Slides leave much to the paper; none of these is a slip."""

from __future__ import annotations

from typing import NamedTuple

_TUTORIAL = "Tutorial at AJCAI 2025 (A. Han, W. Huang)"
_MULTI_TASK = "“Feature learning theory in multi-task and in-context learning” (T. Suzuki, FIMI 2024)"
_SEMINAR = "“How Feature Learning Theory Works?” (Chen Yanbo, FLT Seminar Series, Session 2)"


class SilentPoint(NamedTuple):
    """A place that can be read in more than one way; formulas between dollars. `READINGS` has all of them."""

    title: str
    source: str  # the document
    place: str  # and where in it
    says: str
    silent: str
    assumed: str
    why: str


READINGS = (
    SilentPoint(
        "one large step",
        _TUTORIAL,
        "slide “A representation perspective” (Ba et al. 2022)",
        r"after one gradient step the risk is below $\lVert \mathbf{P}_{>1} f^* \rVert^2$",
        "on the size of the step and the number of samples",
        r"$W_1 = W_0 + \eta \sqrt{N} G_0$ with $\eta = \Theta(\sqrt{N})$ and $n/d$ large",
        r"with $\eta = \Theta(1)$ the risk stays above that bound, in the paper too",
    ),
    SilentPoint(
        "where attention goes",
        _TUTORIAL,
        "slide “Benign overfitting with feature learning (Transformer)” (Jiang et al. 2024)",
        r"with $\mathbf{x}^{(1)} = y \mu$ every token's score with $\mu$ is of order one",
        r"on whether $\mu$ is there the vector or the token that carries it",
        r"each class has a signal of its own, $\mathbf{x}^{(1)} = \mu_y$; with `shared_signal=True` the "
        r"score is that of the token $y \mu$",
        r"scores are linear in the key, so those of $\mu$ and of $y \mu$ have opposite signs for one of the "
        r"labels",
    ),
    SilentPoint(
        "how much stronger the second modality is",
        _TUTORIAL,
        "slide “Multi-model contrastive learning” (Huang et al. 2024)",
        r"$n \cdot \text{SNR}^2 = \Theta(1)$ and $\lVert \tilde{\mu} \rVert = C_\mu \lVert \mu \rVert > "
        r"\lVert \mu \rVert$",
        "on the constants, which belong together",
        r"$C_\mu \geq 2.66$, as in the paper",
        r"early on the signal grows at the rate $\frac{1}{2} C_\mu \lVert \mu \rVert^2$ and noise at "
        r"$\sigma_\xi^2 d/n$, so that the signal is ahead where $n \cdot \text{SNR}^2 = 1$ and $C_\mu$ exceeds 2",
    ),
    SilentPoint(
        "the noise level beside SAM",
        _TUTORIAL,
        "slide “Feature learning under different optimizers (SAM)” (Chen et al. 2023)",
        r"SAM needs $\lVert \mu \rVert = \tilde{\Omega}(1)$, gradient descent $\lVert \mu \rVert^4 = "
        r"\tilde{\Omega}(d/n)$",
        r"on $\sigma_\xi$",
        r"$\sigma_\xi = 1$ there; in general $\lVert \mu \rVert / \sigma_\xi$ takes the place of $\lVert \mu "
        r"\rVert$",
        r"inputs times $c$ and weights over $c$ are the same network, and an earlier slide has $\sigma_\xi^4 "
        r"d$",
    ),
    SilentPoint(
        "label noise, all samples at once",
        _TUTORIAL,
        "slide “Feature learning under different optimizers (Label Noise SGD)” (Huang et al. 2025)",
        "label noise SGD, with a sum over all $n$ samples",
        "on whether batches are drawn",
        "gradient descent on all samples, with labels flipped anew in every step",
        "the theorem on the next slide is about label noise GD",
    ),
    SilentPoint(
        "the truth of each task",
        _MULTI_TASK,
        "slide “2 layer NN model”",
        r"$y_i^{(j)} = \beta_*^{(j)\top} W x_i + \epsilon_i^{(j)}$",
        "on whether that $W$ is the student's first layer or part of the truth",
        r"$y_i^{(j)} = \beta_*^{(j)\top} x_i + \epsilon_i^{(j)}$",
        r"the Bayes estimator of a later slide, $(X^\top X + \sigma^2 \Sigma_\beta^{-1})^{-1} X^\top y$, is "
        r"that of these labels",
    ),
    SilentPoint(
        "what the predictive error is about",
        _MULTI_TASK,
        "slide “Main result”",
        r"$\bar{R}(W)$ has the predictions $x^\top \hat{\beta}^{(j)}$",
        r"on whether $\hat{\beta}^{(j)}$ is the second layer or acts on the inputs",
        r"predictions $x^\top W^\top \hat{\beta}^{(j)}$, $\hat{\beta}^{(j)}$ being the second layer",
        "the slide “Bayes optimal regularization” writes them so",
    ),
    SilentPoint(
        "$k$ in the bounds of ridge regression",
        _MULTI_TASK,
        "slide “Predictive error” (Tsigler and Bartlett 2020)",
        "bias and variance with sums up to $k$ and beyond",
        "on $k$",
        r"the smallest $k$ with $n \lambda + \sum_{i > k} \lambda_i \geq b\, n \lambda_{k+1}$, $b$ a "
        r"constant",
        "the paper has it so",
    ),
    SilentPoint(
        "the objective of Langevin dynamics",
        _MULTI_TASK,
        "slide “Label noise and WG flow”, Theorem (informal)",
        r"$F(\mu_t) - F(\mu^*)$ falls as $\exp(-\alpha \lambda t)$, with entropy regularization",
        r"on whether $F$ holds the entropy, and whether $\lambda$ is the penalty or the temperature",
        r"$F + \lambda \int \mu \log \mu$ falls as $\exp(-2 \alpha \lambda t)$, $\lambda$ being the "
        r"temperature",
        "noise keeps $F$ itself above its least value; the slide's rate is true as well, and half of this one",
    ),
    SilentPoint(
        "half of the in-context risk",
        _MULTI_TASK,
        "slides “Two time scale dynamics” and “Strict saddle”, Theorem 1 (Kim and Suzuki 2024)",
        r"$\mathcal{L}(\mu) = \mathbb{E} \lVert \cdot \rVert^2$, and a threshold at $r^\circ/2$",
        "on the factor that goes with the threshold",
        r"$\mathcal{L}(\mu) = \frac{1}{2} \mathbb{E} \lVert \cdot \rVert^2$",
        r"a feature that is missed costs $r^\circ$ in $\mathbb{E} \lVert \cdot \rVert^2$, so $r^\circ/2$ is "
        r"the loss of the first critical point with the half; without it threshold and slope are true too, "
        r"and weaker, and the bound on curvature holds from $k = 2$ on",
    ),
    SilentPoint(
        "noise and thresholds of sparse coding",
        _SEMINAR,
        "“Data Distribution” and “Good Property Sets”",
        r"$\xi \sim \mathcal{N}(0, \sigma_0 \mathbf{I})$, biases $b_i^{(t)}$ and a scale $\sigma_3^{(t)}$",
        r"on whether $\sigma_0$ is a variance, and on how biases and $\sigma_3^{(t)}$ grow",
        r"$\xi \sim \mathcal{N}(0, \sigma_0^2 \mathbf{I})$, thresholds that begin at $\sigma_1 \sqrt{c_1 "
        r"\log d}$, and $\sigma_3^{(t)}$ in proportion to them",
        r"the start is $\mathcal{N}(0, \sigma_1^2 \mathbf{I})$, and a surely good neuron is then awake on "
        r"its own atom alone",
    ),
)
