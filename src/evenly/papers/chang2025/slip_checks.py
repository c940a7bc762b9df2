"""The work of mistakes 9 and 10: true SAM on a parabola, and the slips of the appendix."""

from collections.abc import Sequence
from itertools import product

import torch
from torch import Tensor, nn

from evenly.optim import SAM
from evenly.papers.experiment import Context, Found
from evenly.rng import generator
from evenly.stability.solutions import Solution, feature_solution
from evenly.stability.stationary import two_cycle

Values = dict[str, dict[int, float]]
SHOWN = 60  # steps of a path that is drawn


def resting(context: Context, *, seeds: Sequence[int], steps: int) -> Found:
    """Mistake 9: where true SAM ends on ½hw², and where the model with constant α does, both over ρ."""
    values: Values = {}
    paths: dict[str, list[list[float]]] = {"SAM": [], "constant α": []}
    for seed in seeds:
        rng = generator(seed, "mistake 9")
        u = torch.rand(3, generator=rng, dtype=torch.float64).tolist()
        h, rho = 0.5 + 4 * u[0], 0.01 + u[1]
        lr = (0.2 + 1.6 * u[2]) / h
        true = sam_path(h, lr=lr, rho=rho, start=1.0, steps=steps)
        # α such that the model contracts by 1 − ηh/2 − 1 = −ηh/2 per step.
        alpha = 2 * rho * h * (lr * h) / (2 - lr * h)
        model = (1 - lr * h * (1 + rho * h / alpha)) ** torch.arange(steps + 1, dtype=torch.float64)
        end = float(true[-2:].abs().mean())
        for name, number in {
            "sam": end / rho,
            "model": float(model[-1].abs()) / rho,
            "cycle": two_cycle(h, lr=lr, rho=rho) / rho,
            "cycle_error": end / two_cycle(h, lr=lr, rho=rho) - 1,
        }.items():
            values.setdefault(name, {})[seed] = number
        for name, path in (("SAM", true), ("constant α", model)):
            paths[name].append([round(v, 6) for v in (path[:SHOWN].abs() / rho).tolist()])
    return Found(values, {"paths": paths})


def sam_path(h: float, *, lr: float, rho: float, start: float, steps: int) -> Tensor:
    """The path of the library's SAM on ½hw²."""
    w = nn.Parameter(torch.tensor([start], dtype=torch.float64))
    sam, sgd = SAM([w], rho=rho), torch.optim.SGD([w], lr=lr)
    path = [w.detach().clone()]
    for _ in range(steps):
        sgd.zero_grad()
        sam.backward(lambda: h * w.square().sum() / 2)
        sgd.step()
        path.append(w.detach().clone())
    return torch.cat(path)


def slips(context: Context, *, seeds: Sequence[int]) -> Found:
    """Mistake 10: the printed example and statements, each as printed and as meant; misfits in percent of the cube."""
    cube_ND = torch.tensor(list(product([1.0, -1.0], repeat=5)), dtype=torch.float64)
    meant = feature_solution(3, dim=5, width=10, r=1.0)
    values: Values = {}
    for seed in seeds:
        rng = generator(seed, "mistake 10")
        c = int(torch.randint(2, 6, (), generator=rng))
        whole = feature_solution(c, dim=5, width=40, r=1.0)
        j = (
            2 * torch.rand(4, generator=rng, dtype=torch.float64) - 1
        )  # the values of J in one direction, equally likely
        k = int(torch.randint(1, 4, (), generator=rng))
        moment = _chained(j, k)
        for name, number in {
            "example.printed": misfit(printed_example(), cube_ND),
            "example.meant": misfit(meant, cube_ND),
            "rows.printed": misfit(first_rows(whole, c), cube_ND),
            "rows.meant": misfit(first_rows(whole, 2**c), cube_ND),
            "moment.printed": abs(float(j.square().pow(2 * k).mean()) / moment - 1),
            "moment.meant": abs(float(j.square().mean()) ** k / moment - 1),
        }.items():
            values.setdefault(name, {})[seed] = number
    return Found(values)


def printed_example() -> Solution:
    """C.1's network as printed: row 6 of W1 is row 5 again, and W2 has +1 there."""
    meant = feature_solution(3, dim=5, width=10, r=1.0)
    w1_MD, w2_M = meant.w1_MD.clone(), meant.w2_M.clone()
    w1_MD[5], w2_M[5] = w1_MD[4], 1.0
    return Solution(w1_MD, meant.b_M, w2_M)


def first_rows(solution: Solution, num: int) -> Solution:
    """The solution with all rows after the first `num` put to zero."""
    kept_M = torch.arange(len(solution.b_M)) < num
    return Solution(solution.w1_MD * kept_M[:, None], solution.b_M * kept_M, solution.w2_M * kept_M)


def misfit(solution: Solution, x_ND: Tensor) -> float:
    """How many examples it does not fit, in percent."""
    return 100 * float(((solution(x_ND) - x_ND[:, 0] * x_ND[:, 1]).abs() > 1e-9).double().mean())


def _chained(j: Tensor, k: int) -> float:
    """E[J_1 ⋯ J_k J_k ⋯ J_1] of k independent draws, by listing them all."""
    drawn = torch.cartesian_prod(*[j] * k).reshape(-1, k)
    return float(drawn.prod(1).square().mean())
