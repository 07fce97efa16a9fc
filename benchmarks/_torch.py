"""What a PyTorch user would write for the heatmap of ReLU benign overfitting, to time featlab against.

Two patches in R^d, y mu (mu = |mu| e_1) and noise; a two-layer CNN under full-batch gradient descent on the
logistic loss; labels flipped in training and in test. `eager` trains one network in a plain loop, `func` many
at once with torch.func, `compiled` the same under torch.compile; a seed means the same draws in all three.
Each returns (test_error, train_loss) after the last step. `python benchmarks/_torch.py` checks and times.
"""

from __future__ import annotations

import functools
import itertools
import statistics
import time
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.func import grad, vmap
from torch.nn.functional import linear, softplus


@dataclass(frozen=True)
class Task:
    """The sizes and the variant: "authors" (the public script) or "theorem" (what the paper states)."""

    variant: str = "authors"
    n: int = 20
    width: int = 10
    steps: int = 100
    tests: int = 1000
    rate: float = 0.1
    flip: float = 0.1
    init_scale: float = 0.01  # of the theorem's Gaussian start

    def start(self, d, key):  # filters (2 width, d), the positive ones first, and the authors' biases
        if self.variant == "theorem":
            return (self.init_scale * torch.randn(2 * self.width, d, generator=key),)
        assert self.variant == "authors", self.variant
        shapes = ((2 * self.width, d), (2 * self.width,))
        return tuple((2 * torch.rand(shape, generator=key) - 1) * d**-0.5 for shape in shapes)

    def sample(self, count, mu, d, key):  # patches (2, count, d) and observed labels (count,)
        clean = 2.0 * torch.randint(2, (count,), generator=key) - 1
        x = torch.zeros(2, count, d)
        x[0, :, 0] = mu * clean
        x[1].normal_(generator=key)
        if self.variant == "theorem":
            x[1, :, 0] = 0
        return x, torch.where(torch.rand(count, generator=key) < self.flip, -clean, clean)

    def output(self, params, x):  # F_+1 - F_-1 of each sample
        plus, minus = linear(x, *params).relu().sum(-3).unflatten(-1, (2, self.width)).sum(-1).unbind(-1)
        return (plus - minus) / (2 if self.variant == "authors" else self.width)

    def loss(self, params, x, y):  # the cross-entropy of the two classes
        return softplus(-y * self.output(params, x)).mean()

    def test_error(self, params, mu, d, key):
        x, y = self.sample(self.tests, mu, d, key)
        return (y * self.output(params, x) <= 0).float().mean()

    def step(self, params, x, y):  # of many runs, stacked along the first axis
        slopes = vmap(grad(self.loss))(params, x, y)
        return tuple(torch.add(p, s, alpha=-self.rate) for p, s in zip(params, slopes))


def eager(mu: float, d: int, seed: int, variant: str = "authors", **sizes) -> tuple[float, float]:
    """One training; the sizes are Task's fields."""
    task, key = Task(variant, **sizes), torch.Generator().manual_seed(seed)
    params = tuple(p.requires_grad_() for p in task.start(d, key))
    x, y = task.sample(task.n, mu, d, key)
    optimizer = torch.optim.SGD(params, lr=task.rate)
    for _ in range(task.steps):
        optimizer.zero_grad()
        task.loss(params, x, y).backward()
        optimizer.step()
    with torch.no_grad():
        return float(task.test_error(params, mu, d, key)), float(task.loss(params, x, y))


@torch.no_grad()
def func(mus, d: int, seeds, variant: str = "authors", step=None, **sizes) -> tuple[Tensor, Tensor]:
    """As many trainings as seeds, the i-th with mus[i] and seeds[i]; step replaces Task.step."""
    task, keys = Task(variant, **sizes), [torch.Generator().manual_seed(seed) for seed in seeds]
    params = tuple(torch.stack(p) for p in zip(*(task.start(d, key) for key in keys)))
    samples = [task.sample(task.n, mu, d, key) for mu, key in zip(mus, keys, strict=True)]
    x, y = (torch.stack(parts) for parts in zip(*samples))
    for _ in range(task.steps):
        params = (step or task.step)(params, x, y)
    errors = [task.test_error(end, mu, d, key) for end, mu, key in zip(zip(*params), mus, keys)]
    return torch.stack(errors), vmap(task.loss)(params, x, y)


@functools.cache
def _compiled(task):
    torch._dynamo.config.recompile_limit = 256  # one program for each d and number of runs
    return torch.compile(task.step, dynamic=False)


def compiled(mus, d: int, seeds, variant: str = "authors", **sizes) -> tuple[Tensor, Tensor] | None:
    """`func` with a compiled step; says so and returns None where torch.compile does not work."""
    try:
        return func(mus, d, seeds, variant, step=_compiled(Task(variant, **sizes)), **sizes)
    except torch._dynamo.exc.TorchDynamoException as error:
        print(f"torch.compile does not work here: {str(error).splitlines()[0]}")


def check(variant: str) -> None:  # a finite difference; same seeds, same numbers; other seeds, same mean
    task, key = Task(variant), torch.Generator().manual_seed(0)
    params = tuple(p.double().requires_grad_() for p in task.start(500, key))
    x, y = (part.double() for part in task.sample(task.n, 2.0, 500, key))
    along = tuple(torch.randn(p.shape, generator=key, dtype=p.dtype) for p in params)
    slope = sum((a * g).sum() for a, g in zip(along, torch.autograd.grad(task.loss(params, x, y), params)))
    up, down = (task.loss(tuple(p + e * a for p, a in zip(params, along)), x, y) for e in (1e-6, -1e-6))
    assert abs((up - down) / 2e-6 - slope) < 1e-6 * abs(slope), (up, down, slope)
    for mu in (2.0, 6.0):
        one = torch.tensor([eager(mu, 500, seed, variant) for seed in range(20)]).T
        print(f"{variant}, |mu| = {mu:g}: eager {one[0].mean():.3f} +- {one[0].std() / 20**0.5:.3f}")
        for name, first, many in (("func", 100, func), ("compiled", 200, compiled)):
            if (same := many([mu] * 20, 500, range(20), variant)) is not None:
                torch.testing.assert_close(torch.stack(same), one, rtol=1e-3, atol=2e-3)  # two test points
                other = many([mu] * 20, 500, range(first, first + 20), variant)[0]
                print(f"  {name}, other seeds {other.mean():.3f} +- {other.std() / 20**0.5:.3f}")
                assert abs(other.mean() - one[0].mean()) < 3 * ((other.var() + one[0].var()) / 20) ** 0.5


def times(d: int, repeats: int = 9) -> None:  # the test error included, cases in turns
    cases = {"eager": (1, lambda: eager(2.0, d, 0))}
    for runs, many in itertools.product((20, 80), (func, compiled)):
        cases[f"{many.__name__} x {runs}"] = runs, functools.partial(many, [2.0] * runs, d, range(runs))
    cases = {name: case for name, case in cases.items() if case[1]() is not None}  # which also compiles
    taken = {name: [] for name in cases}
    for _, (name, (runs, call)) in itertools.product(range(repeats), cases.items()):
        began = time.perf_counter()
        call()
        taken[name].append((time.perf_counter() - began) / runs * 1e3)
    print(f"d = {d}, {torch.get_num_threads()} thread(s), min / median ms per training:")
    print("  " + ", ".join(f"{name} {min(t):.2f} / {statistics.median(t):.2f}" for name, t in taken.items()))


if __name__ == "__main__":
    for each in ("authors", "theorem"):
        check(each)
    for threads, size in itertools.product((1, 2), (100, 500, 1090)):
        torch.set_num_threads(threads)
        times(size)
