"""Every rule on problems whose answer is known in closed form, and options as the formulas they stand for."""

import math

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

import evenly
from evenly.optim import NORMALISATION, RandomPerturbation
from evenly.optim.space import Lists

H = torch.diag(torch.tensor([4.0, 1.0, 0.25], dtype=torch.float64))
W = torch.tensor([1.0, -2.0, 3.0], dtype=torch.float64)


def quadratic(**kwargs) -> tuple[nn.Parameter, Tensor]:
    """L = wᵀHw/2 at W, whose gradient is Hw: the weights, and what a rule's gradient should be compared with."""
    return nn.Parameter(W.clone()), H @ W


def loss_of(w: Tensor) -> Tensor:
    return w @ H @ w / 2


def gradient(build, steps: int = 1) -> list[Tensor]:
    w, _ = quadratic()
    sam = build([w])
    found = []
    for _ in range(steps):
        w.grad = None
        sam.backward(lambda: loss_of(w))
        found.append(w.grad.clone())
    return found


def test_sam_climbs_along_the_unit_gradient() -> None:
    g = H @ W
    expected = H @ (W + 0.3 * g / g.norm())
    torch.testing.assert_close(gradient(lambda p: evenly.SAM(p, rho=0.3))[0], expected, rtol=1e-12, atol=1e-12)


def test_sam_raises_the_loss_to_first_order_by_rho_times_the_gradient_norm() -> None:
    w, g = quadratic()
    losses = []

    def closure() -> Tensor:
        losses.append(loss_of(w))
        return losses[-1]

    evenly.SAM([w], rho=1e-6).backward(closure)
    rise = (losses[1] - losses[0]).item()
    assert rise == pytest.approx(1e-6 * g.norm().item(), rel=1e-4)


def test_sam_on_a_scalar_quadratic_ends_in_the_two_cycle() -> None:
    """|w| = ηhρ/(2 − ηh): normalised SAM does not converge (Chang & Khanna's guide, point 9)."""
    h, lr, rho = 2.0, 0.3, 0.1
    w = nn.Parameter(torch.tensor([1.0], dtype=torch.float64))
    sam = evenly.SAM([w], rho=rho)
    for _ in range(200):
        w.grad = None
        sam.backward(lambda: h * (w**2).sum() / 2)
        w.data -= lr * w.grad
    assert abs(w.item()) == pytest.approx(lr * h * rho / (2 - lr * h), rel=1e-9)


def test_asam_climbs_in_the_ball_that_scales_with_the_weights() -> None:
    g, t = H @ W, W.abs() + 0.01
    expected = H @ (W + 0.3 * t**2 * g / (t * g).norm())
    torch.testing.assert_close(gradient(lambda p: evenly.ASAM(p, rho=0.3))[0], expected, rtol=1e-12, atol=1e-12)


def test_asam_adapts_weights_only_and_its_norm_is_over_both() -> None:
    torch.manual_seed(0)
    net = nn.Linear(3, 2).double()
    seen = []

    def closure() -> Tensor:
        seen.append([p.detach().clone() for p in net.parameters()])
        return net(torch.ones(1, 3, dtype=torch.float64)).square().sum()

    plain = torch.autograd.grad(net(torch.ones(1, 3, dtype=torch.float64)).square().sum(), list(net.parameters()))
    evenly.ASAM(net, rho=0.5, eta=0.1).backward(closure)
    t = net.weight.detach().abs() + 0.1
    norm = math.hypot((t * plain[0]).norm().item(), plain[1].norm().item())
    torch.testing.assert_close(seen[1][0] - seen[0][0], 0.5 * t**2 * plain[0] / norm)
    torch.testing.assert_close(seen[1][1] - seen[0][1], 0.5 * plain[1] / norm)


def test_asam_does_not_change_when_a_relu_network_is_rescaled() -> None:
    """ASAM's point: scale one layer up and the next down, and the displaced loss is the same."""
    torch.manual_seed(0)
    x, y = torch.randn(6, 4, dtype=torch.float64), torch.randn(6, 1, dtype=torch.float64)
    displaced = []
    for factor in (1.0, 8.0):
        torch.manual_seed(1)
        net = nn.Sequential(nn.Linear(4, 5, bias=False), nn.ReLU(), nn.Linear(5, 1, bias=False)).double()
        net[0].weight.data *= factor
        net[2].weight.data /= factor
        losses = []

        def closure(net: nn.Module = net, losses: list = losses) -> Tensor:
            losses.append(F.mse_loss(net(x), y))
            return losses[-1]

        evenly.ASAM(net, rho=0.3, eta=0.0).backward(closure)
        displaced.append(losses[1].item())
    assert displaced[0] == pytest.approx(displaced[1], rel=1e-12)


def test_unnormalised_is_the_gradient_of_a_gradient_step_uphill() -> None:
    expected = H @ (W + 0.3 * H @ W)
    torch.testing.assert_close(gradient(lambda p: evenly.USAM(p, rho=0.3))[0], expected, rtol=1e-12, atol=1e-12)


def test_random_noise_has_the_given_size_and_is_fresh_every_step() -> None:
    w = nn.Parameter(torch.zeros(20_000))
    seen = []
    sam = RandomPerturbation([w], sigma=0.3, seed=3)
    for _ in range(2):
        w.grad = None
        sam.backward(lambda: (seen.append(w.detach().clone()), w.sum())[1])
    assert seen[0].std().item() == pytest.approx(0.3, rel=0.03)
    assert abs(torch.corrcoef(torch.stack(seen))[0, 1].item()) < 0.03
    assert not torch.equal(
        Lists().noise([w], seed=0, step=0, group=0)[0], Lists().noise([w], seed=0, step=0, group=1)[0]
    )


def test_momentum_looks_ahead_along_what_was_accumulated() -> None:
    first, second, third = gradient(lambda p: evenly.MSAM(p, rho=0.3, momentum=0.9), 3)
    v = H @ W
    torch.testing.assert_close(first, v)
    torch.testing.assert_close(second, H @ (W - 0.3 * v / v.norm()))
    v = 0.9 * v + second
    torch.testing.assert_close(third, H @ (W - 0.3 * v / v.norm()))


def test_friendly_climbs_along_what_the_running_mean_does_not_explain() -> None:
    w = nn.Parameter(torch.zeros(2, dtype=torch.float64))
    shared, own = torch.tensor([1.0, 0.0]).double(), torch.tensor([0.0, 1.0]).double()
    seen = []
    sam = evenly.FriendlySAM([w], rho=0.5, sigma=1.0, decay=0.9)
    for batch in (shared, shared + own):

        def closure(batch: Tensor = batch) -> Tensor:
            seen.append(w.detach().clone())
            return w @ batch

        w.grad = None
        sam.backward(closure)
    torch.testing.assert_close(seen[1], 0.5 * shared)
    torch.testing.assert_close(seen[3], 0.5 * own)


def test_gsam_takes_away_what_lies_beside_the_displaced_gradient() -> None:
    g = H @ W
    g_adv = H @ (W + 0.3 * g / g.norm())
    found = gradient(lambda p: evenly.GSAM(p, rho=0.3, alpha=0.4))[0]
    beside = g - (g @ g_adv) / (g_adv @ g_adv) * g_adv
    torch.testing.assert_close(found, g_adv - 0.4 * beside)
    assert (found - g_adv) @ g_adv == pytest.approx(0.0, abs=1e-10)


def test_look_remembers_the_sharpness_direction_for_k_steps() -> None:
    passes = []
    w, g = quadratic()
    sam = evenly.LookSAM([w], rho=0.3, k=3, alpha=0.7)
    found = []
    for _ in range(4):
        w.grad = None
        before = len(passes)
        sam.backward(lambda: (passes.append(1), loss_of(w))[1])
        found.append((len(passes) - before, w.grad.clone()))
    g_adv = H @ (W + 0.3 * g / g.norm())
    g_v = g_adv - (g_adv @ g) / (g @ g) * g
    assert [n for n, _ in found] == [2, 1, 1, 2]
    torch.testing.assert_close(found[0][1], g_adv)
    torch.testing.assert_close(found[1][1], g + 0.7 * g.norm() / g_v.norm() * g_v)
    torch.testing.assert_close(found[2][1], found[1][1])


def network() -> tuple[nn.Sequential, Tensor, Tensor]:
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(4, 5), nn.LayerNorm(5), nn.Tanh(), nn.Linear(5, 3)).double()
    return net, torch.randn(8, 4, dtype=torch.float64), torch.randint(3, (8,))


def displacement(net: nn.Module, sam, closure, *batch: Tensor) -> list[Tensor]:
    """What the last call of the closure saw, less the weights."""
    seen: list[list[Tensor]] = []

    def watched(*batch: Tensor) -> Tensor:
        seen.append([p.detach().clone() for p in net.parameters()])
        return closure(*batch)

    sam.backward(watched, *batch)
    return [b - a.detach() for a, b in zip(net.parameters(), seen[-1], strict=True)]


def test_parameters_that_are_not_displaced_are_not_in_the_norm() -> None:
    net, x, y = network()
    moves = displacement(net, evenly.SAM(net, rho=0.1, where=NORMALISATION), lambda: F.cross_entropy(net(x), y))
    plain = torch.autograd.grad(F.cross_entropy(net(x), y), list(net.parameters()))
    assert math.hypot(*(m.norm().item() for m in moves)) == pytest.approx(0.1)
    assert [bool(m.any()) for m in moves] == [False, False, True, True, False, False]
    norm = math.hypot(plain[2].norm().item(), plain[3].norm().item())
    torch.testing.assert_close(moves[2], 0.1 * plain[2] / norm)
    assert all(p.grad is not None for p in net.parameters())


def test_the_gradient_for_a_part_that_moves_is_the_same_however_it_is_chosen() -> None:
    found = []
    for where in ("3.*", ["3.weight", "3.bias"], lambda name, p: name.startswith("3"), "module"):
        net, x, y = network()
        sam = evenly.SAM(net, rho=0.1, where=net[3] if where == "module" else where)
        sam.backward(lambda net=net, x=x, y=y: F.cross_entropy(net(x), y))
        found.append(torch.cat([p.grad.flatten() for p in net.parameters()]))
    assert all(torch.equal(f, found[0]) for f in found)


def test_every_k_displaces_every_kth_step_and_the_others_are_plain() -> None:
    w, g = quadratic()
    sam = evenly.SAM([w], rho=0.3, every=3)
    displaced = []
    for _ in range(7):
        w.grad = None
        sam.backward(lambda: loss_of(w))
        displaced.append(not torch.equal(w.grad, g))
    assert displaced == [True, False, False, True, False, False, True]


def test_a_fraction_of_the_batch_points_the_way_and_all_of_it_descends() -> None:
    net, x, y = network()

    def closure(x: Tensor, y: Tensor) -> Tensor:
        return F.cross_entropy(net(x), y)

    moves = displacement(net, evenly.SAM(net, rho=0.1, fraction=0.25), closure, x, y)
    early = torch.autograd.grad(closure(x[:2], y[:2]), list(net.parameters()))
    norm = math.hypot(*(g.norm().item() for g in early))
    for move, g in zip(moves, early, strict=True):
        torch.testing.assert_close(move, 0.1 * g / norm)
    found = [p.grad.clone() for p in net.parameters()]
    for p, move in zip(net.parameters(), moves, strict=True):
        p.data += move
    for g, expected in zip(found, torch.autograd.grad(closure(x, y), list(net.parameters())), strict=True):
        torch.testing.assert_close(g, expected)


@pytest.mark.parametrize("family", [evenly.SAM, evenly.ASAM, evenly.GSAM, evenly.FriendlySAM, evenly.MSAM])
def test_groups_of_m_are_the_mean_of_separate_steps(family) -> None:
    net, x, y = network()

    def closure(x: Tensor, y: Tensor) -> Tensor:
        return F.cross_entropy(net(x), y)

    loss = family(net, rho=0.2, m=2).backward(closure, x, y)
    together = [p.grad.clone() for p in net.parameters()]
    net.zero_grad()
    losses = [family(net, rho=0.2).backward(closure, x[i : i + 2], y[i : i + 2]) for i in range(0, 8, 2)]
    for g, p in zip(together, net.parameters(), strict=True):
        torch.testing.assert_close(g, p.grad / 4)
    torch.testing.assert_close(loss, torch.stack(losses).mean())
    net.zero_grad()
    family(net, rho=0.2).backward(closure, x, y)
    if family is not evenly.MSAM:  # Its first step moves nowhere.
        assert not torch.allclose(together[0], next(net.parameters()).grad, rtol=1e-4)


def test_weight_decay_bends_the_ascent_and_adds_nothing_to_the_gradient() -> None:
    w, g = quadratic()
    evenly.SAM([w], rho=0.3, weight_decay=0.5).backward(lambda: loss_of(w))
    d = g + 0.5 * W
    torch.testing.assert_close(w.grad, H @ (W + 0.3 * d / d.norm()))


@pytest.mark.parametrize("same", [True, False])
def test_both_passes_see_the_same_dropout_mask_or_not(same: bool) -> None:
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(4, 50), nn.Dropout(0.5), nn.Linear(50, 1))
    masks = []
    net[1].register_forward_hook(lambda m, i, out: masks.append(out == 0))
    torch.manual_seed(7)
    evenly.SAM(net, same_dropout=same).backward(lambda: net(torch.ones(3, 4)).square().sum())
    after = torch.get_rng_state()
    assert torch.equal(masks[0], masks[1]) is same
    if same:
        torch.manual_seed(7)
        net(torch.ones(3, 4))
        assert torch.equal(after, torch.get_rng_state()), "the step drew more random numbers than one pass does"


def test_rho_may_change_between_steps() -> None:
    w, g = quadratic()
    sam = evenly.SAM([w], rho=0.3)
    sam.rho = 0.1
    sam.backward(lambda: loss_of(w))
    torch.testing.assert_close(w.grad, H @ (W + 0.1 * g / g.norm()))
