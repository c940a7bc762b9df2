"""What real training scripts do around a step: autocast, parts of models, hooks, schedules, micro-batches."""

import copy

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

import evenly
from evenly.errors import UsageError
from evenly.optim import SharpnessAware
from evenly.rules import RULES

NEED_GRADIENT = [name for name, known in RULES.items() if getattr(evenly, known.kind).rule_type.needs_gradient]


def build(name: str, model, **options):
    kind = getattr(evenly, RULES[name].kind)
    if name == "random":
        options["sigma"] = options.pop("rho", RULES[name].rho)
    return kind(model, **options)


def network(seed: int = 0) -> nn.Sequential:
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 3))


def data(seed: int = 1, n: int = 8) -> tuple[Tensor, Tensor]:
    numbers = torch.Generator().manual_seed(seed)
    return torch.randn(n, 4, generator=numbers), torch.randint(3, (n,), generator=numbers)


def gradients(model: nn.Module) -> list[Tensor]:
    return [p.grad.clone() for p in model.parameters()]


def same(a: list[Tensor], b: list[Tensor]) -> bool:
    return all(torch.equal(x, y) for x, y in zip(a, b, strict=True))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("name", RULES)
def test_autocast_around_the_step_equals_autocast_in_the_closure(name: str, dtype: torch.dtype) -> None:
    outside, inside = network(), network()
    one, two = build(name, outside, rho=2.0), build(name, inside, rho=2.0)

    def inner(x: Tensor, y: Tensor) -> Tensor:
        with torch.autocast("cpu", dtype):
            return F.cross_entropy(inside(x), y)

    for step in range(2):
        x, y = data(step)
        outside.zero_grad()
        inside.zero_grad()
        with torch.autocast("cpu", dtype):
            one.backward(lambda x=x, y=y: F.cross_entropy(outside(x), y))
            after = outside(x)
        two.backward(inner, x, y)
        with torch.autocast("cpu", dtype):
            assert torch.equal(after, inside(x)), "a cast of the displaced weights was left behind"
    assert same(gradients(outside), gradients(inside))
    plain = network()
    with torch.autocast("cpu", dtype):
        loss = F.cross_entropy(plain(x), y)
    loss.backward()
    assert not same(gradients(outside), gradients(plain))


@pytest.mark.parametrize("name", [name for name in RULES if name != "lsam"])
def test_leaves_outside_sam_get_the_gradient_of_one_pass_at_the_displaced_weights(name: str) -> None:
    """A head that is not SAM's, another model, and the input: as if the part were chosen with `where`."""
    x, y = data()
    for given in (True, False):
        found = []
        for whole in (False, True):
            model, critic = network(), nn.Linear(3, 1)
            torch.nn.init.constant_(critic.weight, 0.3)
            torch.nn.init.constant_(critic.bias, 0.1)
            leaf = x.clone().requires_grad_(True)
            everything = nn.ModuleList([model, critic])
            options = {"rho": 0.5, **({"backward": Tensor.backward} if given else {})}
            if name == "asam":
                options["adapt"] = "*"
            own = {id(p) for p in model[0].parameters()}
            if whole:  # The same displacement, with every leaf in sight.
                where = lambda _, p, own=own: id(p) in own  # noqa: E731
                sam = build(name, [*everything.parameters(), leaf], where=where, **options)
            else:
                sam = build(name, model[0], **options)
            for _ in range(2):
                everything.zero_grad()
                leaf.grad = None
                sam.backward(lambda m=model, c=critic, i=leaf: F.cross_entropy(m(i), y) + c(m(i)).mean())
            found.append([p.grad.clone() for p in [*model[0].parameters(), *model[2].parameters()]])
            found[-1] += [critic.weight.grad.clone(), leaf.grad.clone()]
            if name not in ("gsam", "wsam", "looksam"):  # These combine what they see; outside is outside.
                reference = found[-1]
        if name not in ("gsam", "wsam", "looksam"):
            for a, b in zip(*found, strict=True):
                torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-7)
            assert reference[-1].abs().sum() > 0
        else:
            plain, critic, leaf = network(), nn.Linear(3, 1), x.clone().requires_grad_(True)
            torch.nn.init.constant_(critic.weight, 0.3)
            torch.nn.init.constant_(critic.bias, 0.1)
            (F.cross_entropy(plain(leaf), y) + critic(plain(leaf)).mean()).backward()
            assert 0.5 < (found[0][-2].norm() / critic.weight.grad.norm()).item() < 1.6
            assert 0.5 < (found[0][-1].norm() / leaf.grad.norm()).item() < 1.6


def test_post_accumulate_hooks_fire_once_and_see_the_gradient_that_is_left() -> None:
    x, y = data()
    for name in RULES:
        model, twin = network(), network()
        seen: list[Tensor] = []
        here: list[bool] = []
        weights = [p.detach().clone() for p in model.parameters()]
        for p, w in zip(model.parameters(), weights, strict=True):

            def hook(p: Tensor, w: Tensor = w) -> None:
                seen.append(p.grad.clone())  # noqa: B023
                here.append(torch.equal(p, w))  # noqa: B023

            p.register_post_accumulate_grad_hook(hook)
        build(name, model, rho=0.3).backward(lambda m=model: F.cross_entropy(m(x), y))
        build(name, twin, rho=0.3).backward(lambda m=twin: F.cross_entropy(m(x), y))
        assert len(seen) == 4
        assert all(here), f"{name}: the hook ran while the weights were displaced"
        assert same(sorted(seen, key=lambda t: t.shape), sorted(gradients(twin), key=lambda t: t.shape))


def test_an_optimizer_in_the_backward_pass_takes_sams_step() -> None:
    x, y = data()
    model, twin = network(), network()
    optimizers = {p: torch.optim.SGD([p], lr=0.1) for p in model.parameters()}
    for p in model.parameters():
        p.register_post_accumulate_grad_hook(lambda p: (optimizers[p].step(), optimizers[p].zero_grad())[1])
    sam, other, sgd = evenly.SAM(model), evenly.SAM(twin), torch.optim.SGD(twin.parameters(), lr=0.1)
    for _ in range(3):
        sam.backward(lambda: F.cross_entropy(model(x), y))
        other.backward(lambda: F.cross_entropy(twin(x), y))
        sgd.step()
        sgd.zero_grad()
    assert same([p.detach() for p in model.parameters()], [p.detach() for p in twin.parameters()])


def test_every_counts_optimizer_steps_and_not_micro_batches() -> None:
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    sam, calls = evenly.SAM(model, every=2), []
    for step in range(4):
        for micro in range(3):
            x, y = data(10 * step + micro)
            before = len(calls)
            sam.backward(lambda x=x, y=y: (calls.append(0), F.cross_entropy(model(x), y))[1])
            assert len(calls) - before == (1 if step % 2 else 2)
        optimizer.step()
        optimizer.zero_grad(set_to_none=step < 2)
    assert sam.num_steps == 4


@pytest.mark.parametrize("fused", [False, True])
def test_a_step_that_clears_gradients_in_any_way_is_a_new_one(fused: bool) -> None:
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, fused=fused)
    sam = evenly.LookSAM(model, k=3)
    x, y = data()
    for step in range(4):
        sam.backward(lambda: F.cross_entropy(model(x), y))
        nn.utils.clip_grad_norm_(model.parameters(), 0.1)
        optimizer.step()
        if step % 2:
            model.zero_grad(set_to_none=False)
        else:
            for p in model.parameters():
                p.grad = None
        assert sam.num_steps == step + 1


def test_parameter_groups_have_radii_of_their_own_over_one_norm() -> None:
    a, b = nn.Parameter(torch.tensor([3.0])), nn.Parameter(torch.tensor([4.0]))
    groups = [{"params": [a], "rho": 0.5, "lr": 0.1}, {"params": [b]}]
    sam = evenly.SAM(groups, rho=0.25)
    sam.backward(lambda: (a**2 + b**2).sum() / 2)
    torch.testing.assert_close(a.grad, torch.tensor([3 + 0.5 * 3 / 5]))
    torch.testing.assert_close(b.grad, torch.tensor([4 + 0.25 * 4 / 5]))
    groups[0]["rho"] = 0.0  # as a scheduler does
    a.grad = b.grad = None
    sam.backward(lambda: (a**2 + b**2).sum() / 2)
    torch.testing.assert_close(a.grad, torch.tensor([3.0]))
    groups[0]["rho"] = -1
    with pytest.raises(UsageError, match="rho=-1 is not a radius"):
        sam.backward(lambda: (a**2 + b**2).sum() / 2)


def test_the_radii_of_groups_are_those_of_another_library() -> None:
    other = pytest.importorskip("pytorch_optimizer").SAM
    x, y = data()
    model, twin = network().double(), network().double()
    groups = [[{"params": m[0].parameters(), "rho": 0.3}, {"params": m[2].parameters()}] for m in (model, twin)]
    listed = [[{**g, "params": list(g["params"])} for g in each] for each in groups]
    sam, sgd = evenly.SAM(listed[0], rho=0.1), torch.optim.SGD(model.parameters(), lr=0.1)
    peer = other(listed[1], torch.optim.SGD, rho=0.1, lr=0.1)
    for _ in range(5):
        sam.backward(lambda: F.cross_entropy(model(x.double()), y))
        sgd.step()
        sgd.zero_grad()

        def closure() -> Tensor:
            peer.zero_grad()
            loss = F.cross_entropy(twin(x.double()), y)
            loss.backward()
            return loss

        closure()
        peer.step(closure)
    for p, q in zip(model.parameters(), twin.parameters(), strict=True):
        torch.testing.assert_close(p, q, rtol=1e-7, atol=1e-8)


def test_a_radius_may_be_a_function_of_the_step() -> None:
    w = nn.Parameter(torch.tensor([3.0, 4.0]))
    sam = evenly.SAM([w], rho=lambda step: 0.5 * step)
    for step in range(3):
        assert sam.rho == 0.5 * step
        w.grad = None
        sam.backward(lambda: (w**2).sum() / 2)
        torch.testing.assert_close(w.grad, w.detach() * (1 + 0.5 * step / 5))
    with pytest.raises(UsageError, match=r"rho=-1\.0 at step 0 is not a radius"):
        evenly.SAM([w], rho=lambda step: -1.0)


def test_a_closure_may_return_outputs_with_its_loss() -> None:
    model, (x, y) = network(), data()
    with torch.no_grad():
        expected = model(x)

    def closure(x: Tensor, y: Tensor):
        out = model(x)
        return F.cross_entropy(out, y), out

    for name in RULES:
        loss, out = build(name, model, rho=0.0).backward(closure, x, y)
        assert torch.equal(out, expected)
        assert not loss.requires_grad
    for options in ({}, {"backward": Tensor.backward}):
        loss, out = evenly.GSAM(model, **options).backward(closure, x, y)
        assert torch.equal(out, expected)
    loss, outs = evenly.SAM(model, m=4).backward(closure, x, y)
    torch.testing.assert_close(torch.cat(outs), expected)


def test_calling_step_says_that_the_optimizer_steps() -> None:
    with pytest.raises(UsageError, match=r"takes no step: call sam\.backward"):
        evenly.SAM(network()).step()


@pytest.mark.parametrize("name", RULES)
def test_a_framework_s_backward_gets_a_loss_with_the_same_gradient(name: str) -> None:
    model, twin = network().double(), network().double()
    called = []

    def backward(loss: Tensor) -> None:
        called.append(loss.item())
        (4 * loss).backward()

    sam, other = build(name, model, rho=0.3, backward=backward), build(name, twin, rho=0.3)
    for step in range(4):
        x, y = data(step)
        x = x.double()
        loss = sam.backward(lambda x=x, y=y: F.cross_entropy(model(x), y))
        other.backward(lambda x=x, y=y: F.cross_entropy(twin(x), y))
        assert loss == called[-1]
        for p, q in zip(model.parameters(), twin.parameters(), strict=True):
            torch.testing.assert_close(p.grad, 4 * q.grad, rtol=1e-12, atol=1e-14)
            p.grad = q.grad = None
    assert len(called) == 4


def test_batchnorm_sees_the_whole_batch_although_a_part_points_the_way() -> None:
    model = nn.Sequential(nn.Linear(4, 5), nn.BatchNorm1d(5, momentum=1.0), nn.Linear(5, 3))
    seen = []
    model[1].register_forward_hook(lambda m, inputs, out: seen.append(inputs[0].detach().mean(0)))
    x, y = data()
    evenly.SAM(model, fraction=0.25).backward(lambda x, y: F.cross_entropy(model(x), y), x, y)
    torch.testing.assert_close(model[1].running_mean, seen[1])
    assert model[1].num_batches_tracked == 1


def test_lsam_of_a_compiled_model_is_that_of_the_model() -> None:
    torch._dynamo.reset()
    x, y = data()
    model, twin = network(), network()
    fast = torch.compile(model, backend="aot_eager")
    a, b = evenly.LSAM(fast, rho=0.3), evenly.LSAM(twin, rho=0.3)
    for _ in range(2):
        a.backward(lambda: F.cross_entropy(fast(x), y))
        b.backward(lambda: F.cross_entropy(twin(x), y))
    for p, q in zip(gradients(model), gradients(twin), strict=True):
        torch.testing.assert_close(p, q)


@pytest.mark.parametrize("name", RULES)
@pytest.mark.parametrize("given", [False, True])
def test_a_loss_that_reaches_none_of_the_parameters_is_refused_at_the_first_step(name: str, given: bool) -> None:
    """Otherwise SAM would be plain SGD in silence: another model, or one whose parameters were replaced."""
    model, (x, y) = network(), data()
    sam = build(name, model, **({"backward": Tensor.backward} if given else {}))
    model.load_state_dict(network(1).state_dict(), assign=True)
    with pytest.raises(UsageError, match=r"4 parameters of the model were added or replaced after"):
        sam.backward(lambda: F.cross_entropy(model(x), y))
    sam = build(name, copy.deepcopy(model), **({"backward": Tensor.backward} if given else {}))
    with pytest.raises(UsageError, match=r"depends on none of the 4 parameters|was never reached"):
        sam.backward(lambda: F.cross_entropy(model(x), y))
    build(name, model).backward(lambda: F.cross_entropy(model(x), y))


def test_an_optimizer_that_evaluates_the_closure_itself_is_refused() -> None:
    model = network()
    with pytest.raises(UsageError, match="LBFGS evaluates the closure itself"):
        SharpnessAware(torch.optim.LBFGS(model.parameters()), evenly.SAM(model))


def test_reentrant_checkpointing_is_refused_with_the_way_out() -> None:
    from torch.utils.checkpoint import checkpoint

    model, (x, y) = network(), data()
    twin = copy.deepcopy(model)
    x.requires_grad_(True)
    with pytest.raises(UsageError, match="use_reentrant=False"):
        evenly.SAM(model).backward(lambda: F.cross_entropy(model[2](checkpoint(model[:2], x, use_reentrant=True)), y))
    evenly.SAM(model).backward(lambda: F.cross_entropy(model[2](checkpoint(model[:2], x, use_reentrant=False)), y))
    evenly.SAM(twin).backward(lambda: F.cross_entropy(twin(x), y))
    assert same(gradients(model), gradients(twin))


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (lambda m: evenly.RandomPerturbation(m, weight_decay=0.1), "this rule climbs no objective"),
        (lambda m: evenly.MSAM(m, adaptive=True), "adaptive=True stretches the ball"),
        (lambda m: evenly.USAM(m, adaptive=True), "adaptive=True stretches the ball"),
        (lambda m: evenly.SAM(m, eta=0.1), "give adaptive=True too"),
        (lambda m: evenly.SAM(m, m="some"), "m='some' is not a number of examples"),
        (lambda m: evenly.WSAM(m, gamma=1.0), "gamma=1.0"),
        (lambda m: evenly.VaSSO(m, theta=0.0), "theta=0.0"),
        (lambda m: evenly.SAM(m, scaler=torch.amp.GradScaler("cpu"), backward=Tensor.backward), "leave out scaler"),
    ],
)
def test_options_that_would_do_nothing_are_refused(made, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        made(network())


@pytest.mark.parametrize("name", [n for n in NEED_GRADIENT if n not in ("usam", "asam")])
def test_adaptive_rules_do_not_change_when_a_relu_network_is_rescaled(name: str) -> None:
    """ASAM's point, for every rule that climbs in a ball."""
    x, y = data()
    losses = []
    for factor in (1.0, 8.0):
        torch.manual_seed(1)
        net = nn.Sequential(nn.Linear(4, 5, bias=False), nn.ReLU(), nn.Linear(5, 3, bias=False)).double()
        net[0].weight.data *= factor
        net[2].weight.data /= factor
        seen: list[float] = []

        def closure(net: nn.Module = net, seen: list[float] = seen) -> Tensor:
            loss = F.cross_entropy(net(x.double()), y)
            seen.append(loss.item())
            return loss

        build(name, net, rho=0.3, adaptive=True, eta=0.0).backward(closure)
        losses.append(seen[1])
    assert losses[0] == pytest.approx(losses[1], rel=1e-9)
