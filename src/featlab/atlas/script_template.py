"""The NumPy script of an experiment with all its variants, to be read as the script itself.

`== words` begins a piece and `?? words` ends a line; either is kept where all the words hold, and those with a
minus do not. What stands between percent signs is a number of the experiment, or a short word that differs.
"""

TEMPLATE = '''
==
"""A two-layer CNN learns a signal beside noise, or memorises the noise; in NumPy alone.

Data      x = [%patch%, xi], two patches in R^d: %fixed%,                              ?? finite
          xi ~ N(0, sigma^2 (I - P)), where P projects on the signal                   ?? orthogonal
          xi ~ N(0, sigma^2 I)                                                         ?? finite -orthogonal
Data      x = [%patch%, xi], two patches, d = infinity: %fixed%,                       ?? infinite
          all noise vectors xi have length one and are orthogonal to all else          ?? infinite
          (each class is two opposite clusters, as in "exclusive or")                  ?? xor
          the labels y_i of the loss are y, flipped by chance                          ?? flips
Network   f(x) = sum_j j%over_m% sum_r [a(<w_jr, %patch%>) + a(<w_jr, xi>)]%halved%, j = +-1, r = 1 ... m,
          a(z) = max(0, z); at the start w_jr ~ N(0, sigma_0^2 I)                      ?? relu
          a(z) = max(0, z)^q; at the start w_jr ~ N(0, sigma_0^2 I)                    ?? power
          a(z) = max(0, z)^q; at the start w_jr ~ N(0, sigma_0^2 I)                    ?? root
          a(z) = z for z > 0, else c z; at the start w_jr ~ N(0, sigma_0^2 I)          ?? leaky
          a(z) = z; at the start w_jr ~ N(0, sigma_0^2 I)                              ?? linear
Loss      L(w) = 1/n sum_i log(1 + exp(-y_i f(x_i))) over the training set             ?? logistic
Loss      L(w) = 1/n sum_i (f(x_i) - y_i)^2 / 2 over the training set                  ?? squared
Training  w <- w - eta grad L(w)                                                       ?? descent -momentum -decay
Training  w <- w - eta (grad L(w) + lambda w)                                          ?? descent -momentum decay
Training  v <- beta v + grad L(w), w <- w - eta v                                      ?? descent momentum -decay
Training  v <- beta v + grad L(w) + lambda w, w <- w - eta v                           ?? descent momentum decay
Training  w <- w - eta_t grad L(w), with eta_t so large that no output changes by more ?? paced
          than the fraction kappa of itself: the path of gradient flow, in few steps   ?? paced
Training  w <- w - eta grad L(w), each label flipped with probability p in every step  ?? label_noise
Training  w <- w - eta grad L(w + tau grad L(w) / |grad L(w)|)                         ?? sam
Training  w <- w - eta sign(g), g = grad L(w)                                          ?? sign -decay
Training  w <- w - eta sign(g), g = grad L(w) + lambda w                               ?? sign decay
Training  w <- w - eta v / (sqrt(s) + epsilon), running means v of g, s of g^2,        ?? adam
          g = grad L(w)                                                                ?? adam -decay
          g = grad L(w) + lambda w                                                     ?? adam decay
Read off  w_jr = %alpha% + j gamma_jr mu / |mu|^2 + sum_i rho_jri xi_i / |xi_i|^2      ?? one
Read off  w_jr = %alpha% + sum_y gamma_jry u_y / |u_y|^2 + sum_i rho_jri xi_i / |xi_i|^2  ?? xor
          exactly: gamma is the signal learnt, rho the noise memorised                 ?? -by_coordinate
          as nearly as can be: gamma is the signal learnt, rho the noise memorised     ?? by_coordinate
Space     All d coordinates are stored, since training treats each by itself.          ?? by_coordinate
Space     All d coordinates are stored: they are fewer than the vectors drawn.         ?? whole -by_coordinate
Space     Weights never leave the span of signal, training noise and initial weights, so ?? span
          coordinates along an orthonormal frame of that span are enough, whatever d is. ?? span
          On the last 2m axes, which the initial weights add, a unit stands for sqrt(d). ?? infinite

Data and network: Cao, Chen, Belkin and Gu (2022); Kou, Chen, Chen and Gu (2023).      ?? one
Data and network: Meng, Zou and Cao (2024).                                            ?? xor
Training: Huang, Shi, Cao and co-authors (2025).                                       ?? label_noise
Training: Foret, Kleiner, Mobahi and Neyshabur (2021).                                 ?? sam
Training: Kingma and Ba (2015).                                                        ?? adam corrected
Training: Kingma and Ba (2015), without their correction of the first steps.           ?? adam -corrected
Written by featlab, whose own random numbers differ: results agree in law, not seed by seed.
"""

import argparse
import json

import numpy as np

N = %n%  # n, training inputs
D = %d%  # d, dimensions                                                               ?? finite
SIGMA = %noise_scale%  # sigma, scale of the noise                                     ?? finite
SIGNAL = %snr%  # %length%, which is the SNR, since noise has length one               ?? infinite
SIGNAL = %signal_norm%  # %length%                                                     ?? norm
SNR = %snr%  # %length% / (sigma sqrt(d))                                              ?? snr
SIGNAL = SNR * SIGMA * np.sqrt(D)                                                      ?? snr
COSINE = %cosine%  # between u_+1 and u_-1                                             ?? cosine
FLIP = %label_flip%  # how often a training label is flipped                           ?? flips -negative
FLIP = %label_flip%  # how often the training label of y = +1 is flipped               ?? negative
NEGATIVE_FLIP = %negative_flip%  # ... of y = -1                                       ?? negative
TEST_FLIP = %test_flip%  # how often a test label is flipped                           ?? flips
M = %width%  # m, filters in each class
Q = %power%  # q, power of the activation                                              ?? power
Q = %power%  # q, power of the activation                                              ?? root
C = %slope%  # c, slope of the activation below 0                                      ?? leaky
SIGMA_0 = %init_scale%  # sigma_0, scale of the initial weights
ETA = %learning_rate%  # eta, learning rate                                            ?? rate
BETA = %momentum%  # beta, momentum                                                    ?? momentum
LAMBDA = %weight_decay%  # lambda, weight decay                                        ?? decay
KAPPA = %pace%  # kappa, the largest relative change of an output in a step            ?? paced
NOISE = %flip%  # p, how often a step sees a label flipped                             ?? label_noise
TAU = %radius%  # tau, how far away the gradient is taken                              ?? sam
BETA_1, BETA_2 = %beta1%, %beta2%  # how much of the running means is kept in a step   ?? adam
EPSILON = %epsilon%  # epsilon                                                         ?? adam
STEPS = %steps%  # of training                                                         ?? -until
LEVEL = %level%  # of the training loss, at which training ends                        ?? until
AT_MOST = %at_most%  # steps                                                           ?? until
AFTER = %after%  # steps that are taken in any case                                    ?? after
TESTS = %tests%  # fresh test inputs
K = %axes% + N + 2 * M  # coordinates of a vector                                      ?? span
K = D  # coordinates of a vector                                                       ?? whole
HEAD = np.repeat([1.0, -1.0], M)%scale%  # weights of the filters' responses: j = +1, then j = -1
==
def activation(z):
    return np.maximum(z, 0.0)                                                          ?? relu
    return np.maximum(z, 0.0) ** Q                                                     ?? power
    return np.maximum(z, 0.0) ** Q                                                     ?? root
    return np.where(z > 0, z, C * z)                                                   ?? leaky
    return z                                                                           ?? linear
==
def activation_slope(z):
    return (z > 0).astype(float)                                                       ?? relu
    return Q * np.maximum(z, 0.0) ** (Q - 1)                                           ?? power
    return np.where(z > 0, Q * np.where(z > 0, z, 1.0) ** (Q - 1), 0.0)                ?? root
    return np.where(z > 0, 1.0, C)                                                     ?? leaky
    return np.ones_like(z)                                                             ?? linear
==
def loss(f, y):
    return np.logaddexp(0.0, -y * f)  # log(1 + exp(-y f)), which never overflows      ?? logistic
    return (f - y) ** 2 / 2                                                            ?? squared
==
def loss_slope(f, y):
    return -y * np.exp(-np.logaddexp(0.0, y * f))  # -y / (1 + exp(y f))               ?? logistic
    return f - y                                                                       ?? squared
==
def output(products):
    """f(x) of each input, from the products of its patches with the weights."""
    return sum(activation(z) for z in products) @ HEAD
==
def training_loss(weights, patches, y):
    return np.mean(loss(output([patch @ weights.T for patch in patches]), y))
==
def gradient(weights, patches, y):
    """grad L = 1/n sum_i l'(f(x_i)) HEAD_jr sum_p a'(<w_jr, x_ip>) x_ip, by the chain rule."""
    products = [patch @ weights.T for patch in patches]
    slope = loss_slope(output(products), y)[:, None] * HEAD / N
    return sum((slope * activation_slope(z)).T @ patch for z, patch in zip(products, patches))
== paced
def paced_rate(weights, patches, g):
    """kappa min_i max(|f_i|, phi) / |<grad f_i, g>| with phi = min(max_i |f_i|, 1) / 10."""
    products = [patch @ weights.T for patch in patches]
    sizes = np.abs(output(products))
    change = sum(activation_slope(z) * (patch @ g.T) for z, patch in zip(products, patches)) @ HEAD
    moving = change != 0
    allowed = np.maximum(sizes, min(sizes.max(), 1.0) / 10)[moving]
    return KAPPA * np.min(allowed / np.abs(change[moving])) if moving.any() else 0.0
== frame
def gaussian_rows(rng, count, used):
    """Rows of N(0, I_d) in a Gram-Schmidt frame: N(0, 1) on the axes in use, then a Bartlett factor
    with N(0, 1) below its diagonal and chi of d - used - i degrees of freedom on it.
    """
    own = np.tril(rng.standard_normal((count, count)), -1)
    np.fill_diagonal(own, np.sqrt(rng.chisquare(D - used - np.arange(count))))
    rows = np.zeros((count, K))
    rows[:, : used + count] = np.hstack([rng.standard_normal((count, used)), own])
    return rows
==
def draw(rng):
    """Signal, noise of the training inputs and initial weights: a vector a row."""
    mu = SIGNAL * np.eye(1, K)[0]  # along the first axis                              ?? one
    u = SIGNAL * np.eye(2, K)  # along the first two axes                              ?? xor -cosine
    u = SIGNAL * np.eye(2, K)                                                          ?? cosine
    u[1, :2] = SIGNAL * COSINE, SIGNAL * np.sqrt(1 - COSINE**2)                        ?? cosine
    noise = SIGMA * gaussian_rows(rng, N, %axes%)                                      ?? frame
    noise = SIGMA * rng.standard_normal((N, K))                                        ?? whole
    noise[:, :%axes%] = 0.0  # orthogonal to the signal                                ?? orthogonal
    start = SIGMA_0 * gaussian_rows(rng, 2 * M, %axes% + N)                            ?? frame
    start = SIGMA_0 * rng.standard_normal((2 * M, K))                                  ?? whole
    noise = np.eye(N, K, %axes%)  # orthonormal, and orthogonal to the signal          ?? infinite
    products = rng.standard_normal((2 * M, %axes% + N))  # of the start with signal and noise  ?? infinite
    start = SIGMA_0 * np.hstack([products, np.eye(2 * M)])                             ?? infinite
    return %mu%, noise, start
== flips
def toss(rng, count, flip, negative_flip):                                             ?? negative
def toss(rng, count, flip):                                                            ?? -negative
    """Labels y, and the same as they are observed."""
    y = rng.choice([1.0, -1.0], count)
    flip = np.where(y > 0, flip, negative_flip)                                        ?? negative
    return y, np.where(rng.random(count) < flip, -y, y)
== xor
def signal_patch(rng, y, u):
    """s u_y for each y, or its products with the weights, if u holds those of u_+1 and u_-1."""
    s = rng.choice([1.0, -1.0], (len(y), 1))
    return s * np.where(y[:, None] > 0, u[0], u[1])
==
def train(%rng%weights, patches, labels):
    velocity = np.zeros_like(weights)                                                  ?? momentum
    mean, square = np.zeros_like(weights), np.zeros_like(weights)                      ?? adam
    for _ in range(STEPS):                                                             ?? -until -corrected
    for steps in range(STEPS):                                                         ?? -until corrected
    steps = 0                                                                          ?? until
    while steps < AT_MOST and training_loss(weights, patches, labels) > LEVEL:         ?? until -after
    while steps < AT_MOST and (steps < AFTER or training_loss(weights, patches, labels) > LEVEL):  ?? after
        g = gradient(weights, patches, labels)                                         ?? -label_noise -decay
        g = gradient(weights, patches, labels) + LAMBDA * weights                      ?? decay
        seen = np.where(rng.random(N) < NOISE, -labels, labels)                        ?? label_noise
        g = gradient(weights, patches, seen)                                           ?? label_noise
        moved = weights - ETA * g                                                      ?? label_noise
        moved = weights - ETA * g                                                      ?? descent -momentum
        velocity = BETA * velocity + g                                                 ?? momentum
        moved = weights - ETA * velocity                                               ?? momentum
        moved = weights - paced_rate(weights, patches, g) * g                          ?? paced
        nearby = weights + TAU * g / (np.linalg.norm(g) or 1.0)                        ?? sam
        moved = weights - ETA * gradient(nearby, patches, labels)                      ?? sam
        moved = weights - ETA * np.sign(g)                                             ?? sign
        mean = BETA_1 * mean + (1 - BETA_1) * g                                        ?? adam
        square = BETA_2 * square + (1 - BETA_2) * g**2                                 ?? adam
        moved = weights - ETA * mean / (np.sqrt(square) + EPSILON)                     ?? adam -corrected
        v, s = mean / (1 - BETA_1 ** (steps + 1)), square / (1 - BETA_2 ** (steps + 1))  ?? corrected
        moved = weights - ETA * v / (np.sqrt(s) + EPSILON)                             ?? corrected
        if not np.isfinite(moved).all():
            break  # a run that diverges keeps its last finite weights
        weights = moved
        steps += 1                                                                     ?? until
    return weights%count%
==
def largest_coefficients(learnt, %mu%, noise):
    """The largest gamma and the largest rho of what was learnt, by least squares."""
    vectors = np.vstack([%mu%, noise])
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    solution = np.linalg.lstsq((vectors / lengths).T, learnt.T, rcond=None)[0] * lengths
    return np.max(np.sign(HEAD) * solution[0]), np.max(solution[1:])                   ?? one
    return np.max(solution[:2]), np.max(solution[2:])                                  ?? xor
==
def run(seed):
    """One training, and where it ended."""
    rng = np.random.default_rng(seed)
    %mu%, noise, start = draw(rng)
    y = rng.choice([1.0, -1.0], N)                                                     ?? -flips
    y, labels = toss(rng, N, FLIP)                                                     ?? flips -negative
    y, labels = toss(rng, N, FLIP, NEGATIVE_FLIP)                                      ?? negative
    turns = np.resize([1.0, -1.0], N)                                                  ?? balanced
    y, labels = turns, turns * y * labels                                              ?? balanced flips
    y = turns                                                                          ?? balanced -flips
    patches = [np.outer(y, mu), noise]                                                 ?? one
    patches = [signal_patch(rng, y, u), noise]                                         ?? xor
    weights%count% = train(%rng%start, patches, %labels%)

    # Of fresh noise only its products with the weights are drawn: Gaussian, with covariance  ?? finite
    # sigma^2 W W^T = sigma^2 R^T R, W being the weights less their part along the signal.  ?? orthogonal
    # sigma^2 W W^T = sigma^2 R^T R, W being the weights.                              ?? finite -orthogonal
    r = np.linalg.qr(weights[:, %axes%:].T, mode="r")                                  ?? orthogonal
    r = np.linalg.qr(weights.T, mode="r")                                              ?? finite -orthogonal
    on_noise = SIGMA * rng.standard_normal((TESTS, len(r))) @ r                        ?? finite
    # Fresh noise is orthogonal to all that was learnt; the start alone has products with it.  ?? infinite
    on_noise = rng.standard_normal((TESTS, 2 * M)) @ weights[:, -2 * M :].T            ?? infinite
    y_test = rng.choice([1.0, -1.0], TESTS)                                            ?? -flips
    y_test, labels_test = toss(rng, TESTS, TEST_FLIP)                                  ?? flips -negative
    y_test, labels_test = toss(rng, TESTS, TEST_FLIP, TEST_FLIP)                       ?? negative
    f_test = output([np.outer(y_test, weights @ mu), on_noise])                        ?? one
    f_test = output([signal_patch(rng, y_test, u @ weights.T), on_noise])              ?? xor
                                                                                       ?? alpha
    # On the last 2m axes nothing but the start has a part: what is left of it is alpha.  ?? alpha
    left, whole = weights[:, -2 * M :], start[:, -2 * M :]                             ?? alpha
    alpha = np.sum(left * whole) / np.sum(whole**2)                                    ?? alpha
    gamma, rho = largest_coefficients(weights - %start%, %mu%, noise)
    return {
        "seed": seed,
        "steps": steps,                                                                ?? until
        "train_loss": training_loss(weights, patches, %labels%),
        "test_error": np.mean(y_test * f_test <= 0),
        "test_loss": np.mean(loss(f_test, %test_labels%)),
        "max_gamma": gamma,
        "max_rho": rho,
    }
==
def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=%seeds%, help="how many trainings")
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--json", action="store_true", help="print a JSON list of one dict a seed")
    options = parser.parse_args()
    if options.seeds < 1 or options.first_seed < 0:
        parser.error("--seeds must be at least 1 and --first-seed at least 0")
    results = [run(options.first_seed + i) for i in range(options.seeds)]
    if options.json:
        print(json.dumps(results))
        return
    print("".join(f"{name:>12}" for name in results[0]))
    for result in results:
        print("".join(f"{value:>12.4g}" for value in result.values()))
    means = np.mean([list(result.values())[1:] for result in results], axis=0)
    print(f"{'mean':>12}" + "".join(f"{mean:>12.4g}" for mean in means))
==
if __name__ == "__main__":
    main()
'''
