"""What every member of the SAM family keeps to."""

import copy
import inspect
import io

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

import evenly
from evenly.optim import RandomPerturbation
from evenly.rules import RULES

BUILT_WITH = {"looksam": {"k": 2}}  # so that a few steps show both kinds


def builder(name: str):
    """A function that builds the rule with a large radius; σ stands for ρ where a rule has no radius."""
    kind = getattr(evenly, RULES[name].kind)

    def build(model, **options):
        options = {"rho": 0.5, **BUILT_WITH.get(name, {}), **options}
        if "sigma" in inspect.signature(kind).parameters and "rho" not in inspect.signature(kind).parameters:
            options["sigma"] = options.pop("rho")
        return kind(model, **options)

    return build


FAMILY = {name: builder(name) for name in RULES}
NEED_GRADIENT = [name for name, known in RULES.items() if getattr(evenly, known.kind).rule_type.needs_gradient]
every_variant = pytest.mark.parametrize("build", FAMILY.values(), ids=FAMILY)


class Net(nn.Module):
    """Convolution, BatchNorm, dropout and a head: what most networks are made of."""

    def __init__(self, dropout: float = 0.0) -> None:
        super().__init__()
        self.conv = nn.Conv2d(1, 3, 3)
        self.norm = nn.BatchNorm2d(3)
        self.drop = nn.Dropout(dropout)
        self.fc = nn.Linear(12, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.fc(self.drop(F.relu(self.norm(self.conv(x)))).flatten(1))


def problem(seed: int = 0, n: int = 8) -> tuple[nn.Module, Tensor, Tensor]:
    torch.manual_seed(seed)
    return Net(), torch.randn(n, 1, 4, 4), torch.randint(3, (n,))


def mlp(seed: int = 0, n: int = 8) -> tuple[nn.Module, Tensor, Tensor]:
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 3)), torch.randn(n, 4), torch.randint(3, (n,))


def gradients(model: nn.Module) -> list[Tensor | None]:
    return [None if p.grad is None else p.grad.clone() for p in model.parameters()]


def train(model: nn.Module, sam, x: Tensor, y: Tensor, steps: int, **sgd) -> list[Tensor]:
    optimizer = torch.optim.SGD(model.parameters(), **{"lr": 0.05, "momentum": 0.9, **sgd})
    losses = []
    for i in range(steps):
        losses.append(sam.backward(lambda i=i: F.cross_entropy(model(x + 0.1 * i), y)))
        optimizer.step()
        optimizer.zero_grad()
    return losses


@every_variant
def test_weights_and_their_storage_are_bit_identical_after_backward(build) -> None:
    model, x, y = problem()
    sam = build(model)
    before = [(p.data_ptr(), p.detach().clone()) for p in model.parameters()]
    seen = []
    for _ in range(3):

        def closure() -> Tensor:
            seen.append(torch.cat([p.detach().flatten() for p in model.parameters()]))
            return F.cross_entropy(model(x), y)

        sam.backward(closure)
        model.zero_grad()
    assert any(not torch.equal(v, seen[0]) for v in seen), "the weights never moved"
    for p, (pointer, old) in zip(model.parameters(), before, strict=True):
        assert p.data_ptr() == pointer
        assert torch.equal(p, old)


@every_variant
def test_a_closure_that_fails_in_the_last_pass_leaves_weights_gradients_and_tracking(build) -> None:
    model, x, y = problem()
    sam = build(model)
    sam.backward(lambda: F.cross_entropy(model(x), y))
    before, held = [p.detach().clone() for p in model.parameters()], gradients(model)
    calls = 0

    def closure() -> Tensor:
        nonlocal calls
        calls += 1
        if calls == 2 or isinstance(sam, evenly.MSAM | RandomPerturbation | evenly.LookSAM):
            raise KeyboardInterrupt
        return F.cross_entropy(model(x), y)

    with pytest.raises(KeyboardInterrupt):
        sam.backward(closure)
    assert all(torch.equal(p, old) for p, old in zip(model.parameters(), before, strict=True))
    assert all(torch.equal(p.grad, old) for p, old in zip(model.parameters(), held, strict=True))
    assert model.norm.track_running_stats


@every_variant
def test_rho_zero_is_bit_equal_to_a_plain_backward(build) -> None:
    model, x, y = problem()
    twin = copy.deepcopy(model)
    loss = build(model, rho=0.0).backward(lambda: F.cross_entropy(model(x), y))
    plain = F.cross_entropy(twin(x), y)
    plain.backward()
    assert torch.equal(loss, plain)
    assert not loss.requires_grad
    assert all(torch.equal(a, b) for a, b in zip(gradients(model), gradients(twin), strict=True))
    assert all(torch.equal(a, b) for a, b in zip(model.buffers(), twin.buffers(), strict=True))


@pytest.mark.parametrize("name", NEED_GRADIENT)
def test_the_loss_returned_is_the_one_at_the_weights(name: str) -> None:
    model, x, y = mlp()
    plain = F.cross_entropy(model(x), y)
    assert torch.equal(FAMILY[name](model).backward(lambda: F.cross_entropy(model(x), y)), plain)


@every_variant
def test_batchnorm_statistics_and_counter_advance_once_a_step(build) -> None:
    model, x, y = problem()
    twin = copy.deepcopy(model)
    sam = build(model)
    for _ in range(3):
        sam.backward(lambda: F.cross_entropy(model(x), y))
    assert model.norm.num_batches_tracked == 3
    if build in [FAMILY[name] for name in NEED_GRADIENT]:  # The others make their only pass at displaced weights.
        for _ in range(3):
            twin(x)
        assert torch.equal(model.norm.running_mean, twin.norm.running_mean)
        assert torch.equal(model.norm.running_var, twin.norm.running_var)
    assert model.norm.track_running_stats


class Counter(nn.Module):
    """Writes to one buffer in place and replaces another, as layers of one's own do."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("seen", torch.zeros(()))
        self.register_buffer("last", torch.zeros(()))

    def forward(self, x: Tensor) -> Tensor:
        self.seen += 1
        self.last = self.last + 1
        return x


@every_variant
def test_any_other_buffer_that_a_pass_writes_to_advances_once(build) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(
        Counter(), nn.utils.parametrizations.spectral_norm(nn.Linear(4, 4)), nn.Unflatten(1, (2, 2)),
        nn.InstanceNorm1d(2, track_running_stats=True), nn.Flatten(), nn.Linear(4, 3),
    )  # fmt: skip
    twin = copy.deepcopy(model)
    x, y = torch.randn(8, 4), torch.randint(3, (8,))
    build(model).backward(lambda: F.cross_entropy(model(x), y))
    twin(x)
    assert model[0].seen == 1
    assert model[0].last == 1
    if build in [FAMILY[name] for name in NEED_GRADIENT]:
        assert all(torch.equal(a, b) for a, b in zip(model.buffers(), twin.buffers(), strict=True))


@pytest.mark.parametrize("name", NEED_GRADIENT)
@pytest.mark.parametrize("m", [None, 4])
def test_a_first_pass_on_a_fraction_leaves_buffers_to_the_pass_that_sees_the_batch(name: str, m: int | None) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(
        Counter(), nn.utils.parametrizations.spectral_norm(nn.Linear(4, 4)), nn.BatchNorm1d(4), nn.Unflatten(1, (2, 2)),
        nn.InstanceNorm1d(2, track_running_stats=True), nn.Flatten(), nn.Linear(4, 3),
    )  # fmt: skip
    twin = copy.deepcopy(model)
    x, y = torch.randn(8, 4), torch.randint(3, (8,))
    sam = FAMILY[name](
        model, rho=1e-6, fraction=0.5, m=m
    )  # so little that the pass at displaced weights is the plain one
    for _ in range(3):
        sam.backward(lambda x, y: F.cross_entropy(model(x), y), x, y)
        twin(x if m is None else x[:m])
        model.zero_grad()
    assert model[0].seen == model[0].last == 3
    for (key, a), b in zip(model.named_buffers(), twin.buffers(), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-3, atol=1e-4, msg=lambda text, key=key: f"{key}: {text}")


@every_variant
def test_eval_mode_normalises_with_running_statistics_in_every_pass(build) -> None:
    model, x, y = problem()
    model.eval()
    before = [b.clone() for b in model.buffers()]
    build(model).backward(lambda: F.cross_entropy(model(x), y))
    assert all(torch.equal(a, b) for a, b in zip(model.buffers(), before, strict=True))
    assert not model.training


@every_variant
def test_frozen_unused_and_sometimes_used_parameters(build) -> None:
    model, x, y = mlp()
    model[0].bias.requires_grad_(False)
    model.register_parameter("unused", nn.Parameter(torch.ones(2)))
    model.register_parameter("sometimes", nn.Parameter(torch.ones(())))
    sam = build(model)
    before = [p.detach().clone() for p in model.parameters()]
    for turn in range(4):
        calls = 0

        def closure(turn: int = turn) -> Tensor:
            nonlocal calls
            calls += 1
            used = calls == (1 if turn % 2 else 2)
            return F.cross_entropy(model(x), y) * (model.sometimes if used else 1.0)

        sam.backward(closure)
    assert model[0].bias.grad is None
    assert model.unused.grad is None
    assert all(torch.equal(p, old) for p, old in zip(model.parameters(), before, strict=True))
    assert all(torch.isfinite(p.grad).all() for p in model.parameters() if p.grad is not None)


@every_variant
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_zero_gradients_give_zero_gradients_in_every_precision(build, dtype: torch.dtype) -> None:
    model, x, _ = mlp()
    model.to(dtype)
    sam = build(model)
    for _ in range(2):
        sam.backward(lambda: (model(x.to(dtype)) * 0).sum())
    assert all(torch.equal(p.grad, torch.zeros_like(p)) for p in model.parameters())
    assert sam.skipped == 0


@every_variant
@pytest.mark.parametrize("value", [float("inf"), float("nan")])
def test_a_first_gradient_that_is_not_finite_skips_the_ascent_and_is_counted(build, value: float) -> None:
    model, x, y = mlp()
    sam = build(model)
    twin = copy.deepcopy(model)
    calls = 0

    def closure() -> Tensor:
        nonlocal calls
        calls += 1
        loss = F.cross_entropy(model(x), y)
        return loss * value if calls == 1 else loss

    sam.backward(closure)
    assert all(torch.isfinite(p).all() for p in model.parameters())
    if build not in [FAMILY[name] for name in NEED_GRADIENT]:
        return  # Their only pass is the bad one.
    assert sam.skipped == 1
    F.cross_entropy(twin(x), y).backward()
    assert all(torch.equal(a, b) for a, b in zip(gradients(model), gradients(twin), strict=True))
    model.zero_grad()
    sam.backward(lambda: F.cross_entropy(model(x), y))
    assert all(torch.isfinite(p.grad).all() for p in model.parameters()), "the bad gradient was remembered"


@every_variant
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_parameters_move_as_single_precision_ones_do(build, dtype: torch.dtype) -> None:
    model, x, y = mlp()
    model, x = model.to(dtype), x.to(dtype)
    single = copy.deepcopy(model).float()
    a, b = build(model), build(single)
    for _ in range(2):
        model.zero_grad()
        single.zero_grad()
        a.backward(lambda: F.cross_entropy(model(x).float(), y) * 1e-4)  # ρ/‖g‖ is beyond half precision's range
        b.backward(lambda: F.cross_entropy(single(x.float()), y) * 1e-4)
    if build is not FAMILY["random"]:  # Noise is drawn in the parameter's own precision.
        for p, q in zip(model.parameters(), single.parameters(), strict=True):
            torch.testing.assert_close(p.grad.float() * 1e4, q.grad * 1e4, atol=0.03, rtol=0.1)


@every_variant
def test_sparse_gradients_stay_sparse_and_equal_dense_ones(build) -> None:
    def net(sparse: bool) -> nn.Module:
        torch.manual_seed(1)
        return nn.Sequential(nn.Embedding(7, 4, sparse=sparse), nn.Flatten(), nn.Linear(8, 3))

    x, y = torch.tensor([[0, 1], [1, 1], [5, 0]]), torch.tensor([0, 1, 2])
    model, dense = net(True), net(False)
    a, b = build(model), build(dense)
    for _ in range(3):
        model.zero_grad()
        dense.zero_grad()
        a.backward(lambda: F.cross_entropy(model(x), y))
        b.backward(lambda: F.cross_entropy(dense(x), y))
    if not (a.rule.combines and a.rule.needs_gradient):
        assert model[0].weight.grad.is_sparse
    for p, q in zip(model.parameters(), dense.parameters(), strict=True):
        torch.testing.assert_close(p.grad.to_dense(), q.grad)


@every_variant
def test_complex_parameters_move_as_their_real_and_imaginary_parts_do(build) -> None:
    if build in (FAMILY["lsam"], FAMILY["asam"], FAMILY["random"]):
        pytest.skip("no complex last layer; |w| and the noise are defined on the complex number itself")
    torch.manual_seed(0)
    z = nn.Parameter(torch.randn(3, dtype=torch.complex64))
    pair = nn.Parameter(torch.view_as_real(z.detach()).clone())
    a, b = build([z]), build([pair])
    target = torch.randn(3, dtype=torch.complex64)
    for _ in range(3):
        z.grad = pair.grad = None
        a.backward(lambda: ((z**2 - target).abs() ** 2).sum())
        b.backward(lambda: ((torch.view_as_complex(pair) ** 2 - target).abs() ** 2).sum())
        torch.testing.assert_close(torch.view_as_real(z.grad), pair.grad)


@every_variant
def test_a_shared_parameter_is_displaced_once(build) -> None:
    torch.manual_seed(0)
    first = nn.Linear(3, 3, bias=False)
    second = nn.Linear(3, 3, bias=False)
    second.weight = first.weight
    model = nn.Sequential(first, nn.Tanh(), second, nn.Linear(3, 2))
    sam = build(model)
    before = first.weight.detach().clone()
    seen = []

    def closure() -> Tensor:
        seen.append((first.weight.detach().clone(), second.weight.detach().clone()))
        return model(torch.ones(2, 3)).square().sum()

    sam.backward(closure)
    sam.backward(closure)
    assert all(torch.equal(a, b) for a, b in seen)
    assert torch.equal(first.weight, before)
    assert len(sam.params) == 3


@every_variant
def test_micro_batches_of_one_optimizer_step_are_perturbation_groups_of_one_step(build) -> None:
    """Two micro-batches of 4 with half the loss each, or 8 examples with m=4: the same weights, step after step."""
    if build is FAMILY["usam"]:
        pytest.skip("ε = ρ∇L depends on the scale of the loss, which is half here")
    model, _, _ = mlp()
    model.double()
    twin = copy.deepcopy(model)
    sam, other = build(model, rho=0.1), build(twin, rho=0.1, m=4)
    one, two = (torch.optim.SGD(m.parameters(), lr=0.2, momentum=0.9) for m in (model, twin))
    for step in range(5):
        torch.manual_seed(step)
        x, y = torch.randn(8, 4, dtype=torch.float64), torch.randint(3, (8,))
        for a, b in ((x[:4], y[:4]), (x[4:], y[4:])):
            sam.backward(lambda a=a, b=b: F.cross_entropy(model(a), b) / 2)
        other.backward(lambda x, y: F.cross_entropy(twin(x), y), x, y)
        for o in (one, two):
            o.step()
            o.zero_grad(set_to_none=step % 2 == 0)
        assert (sam.num_steps, other.num_steps) == (step + 1, step + 1)
    for p, q in zip(model.parameters(), twin.parameters(), strict=True):
        torch.testing.assert_close(p, q, rtol=1e-11, atol=1e-12)


@every_variant
def test_a_power_of_two_loss_scale_changes_no_bit_of_the_step(build) -> None:
    model, x, y = mlp()
    twin = copy.deepcopy(model)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**12, growth_interval=2)
    scaled, plain = build(model, scaler=scaler), build(twin)
    one, other = (torch.optim.SGD(m.parameters(), lr=0.1, momentum=0.9) for m in (model, twin))
    for _ in range(5):
        loss = scaled.backward(lambda: F.cross_entropy(model(x), y))
        scaler.step(one)
        scaler.update()
        expected = plain.backward(lambda: F.cross_entropy(twin(x), y))
        other.step()
        one.zero_grad()
        other.zero_grad()
        torch.testing.assert_close(loss, expected)
    assert scaler.get_scale() > 2.0**12, "the scale never changed, so nothing was shown"
    for p, q in zip(model.parameters(), twin.parameters(), strict=True):
        torch.testing.assert_close(p, q, rtol=1e-5, atol=1e-6)


@every_variant
def test_clipping_and_schedulers_are_the_users(build) -> None:
    model, x, y = mlp()
    sam = build(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.5)
    for _ in range(3):
        sam.backward(lambda: F.cross_entropy(model(x), y))
        nn.utils.clip_grad_norm_(model.parameters(), 1e-3)
        assert nn.utils.get_total_norm(p.grad for p in model.parameters()) <= 1.001e-3
        optimizer.step()
        scheduler.step()
        optimizer.zero_grad()
    assert optimizer.param_groups[0]["lr"] == pytest.approx(0.0125)


@every_variant
def test_resume_from_state_dict_is_bit_equal(build) -> None:
    model, x, y = problem()
    whole, sam = copy.deepcopy(model), build(model)
    straight = build(whole)
    a = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    b = torch.optim.SGD(whole.parameters(), lr=0.05, momentum=0.9)
    for i in range(7):
        if i == 3:
            file = io.BytesIO()
            torch.save({"model": model.state_dict(), "sam": sam.state_dict(), "sgd": a.state_dict()}, file)
            file.seek(0)
            state = torch.load(file, weights_only=True)
            model = problem(seed=5)[0]
            model.load_state_dict(state["model"])
            sam = build(model)
            sam.load_state_dict(state["sam"])
            a = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
            a.load_state_dict(state["sgd"])
        for m, s, o in ((model, sam, a), (whole, straight, b)):
            s.backward(lambda m=m: F.cross_entropy(m(x), y))
            o.step()
            o.zero_grad()
    for p, q in zip(model.state_dict().values(), whole.state_dict().values(), strict=True):
        assert torch.equal(p, q)
    assert sam.num_steps == 7


def test_the_state_of_another_rule_is_refused() -> None:
    model, *_ = mlp()
    with pytest.raises(evenly.errors.UsageError, match=r"state is of GSAM\(.*\), this is SAM\(\): build the same rule"):
        evenly.SAM(model).load_state_dict(evenly.GSAM(model).state_dict())


@every_variant
def test_a_deepcopy_with_its_model_goes_its_own_way(build) -> None:
    model, x, y = problem()
    sam = build(model)
    train(model, sam, x, y, 2)
    before = [p.detach().clone() for p in model.parameters()]
    twin, twin_sam = copy.deepcopy((model, sam))
    train(twin, twin_sam, x, y, 2, momentum=0.0)
    assert all(torch.equal(p, old) for p, old in zip(model.parameters(), before, strict=True))
    train(model, sam, x, y, 2, momentum=0.0)
    for p, q in zip(model.parameters(), twin.parameters(), strict=True):
        assert torch.equal(p, q)


@every_variant
def test_a_compiled_model_gives_the_same_gradient(build) -> None:
    if build is FAMILY["lsam"]:
        pytest.skip("LSAM needs to see the head: test_sam_last_layer compiles the body")
    torch._dynamo.reset()
    model, x, y = problem()
    twin = copy.deepcopy(model)
    fast = torch.compile(model, backend="aot_eager")
    a, b = build(fast), build(twin)
    for _ in range(2):
        a.backward(lambda: F.cross_entropy(fast(x), y))
        b.backward(lambda: F.cross_entropy(twin(x), y))
    for p, q in zip(gradients(model), gradients(twin), strict=True):
        torch.testing.assert_close(p, q)
    assert model.norm.num_batches_tracked == 2
    torch.testing.assert_close(model.norm.running_mean, twin.norm.running_mean)


@every_variant
def test_training_lowers_the_loss(build) -> None:
    model, x, _ = mlp(n=32)
    y = x[:, :3].argmax(1)
    sam = build(model, rho=0.02)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    losses = []
    for _ in range(60):
        losses.append(sam.backward(lambda: F.cross_entropy(model(x), y)))
        optimizer.step()
        optimizer.zero_grad()
    assert losses[-1] < 0.3 * losses[0]


@every_variant
def test_the_global_generator_and_grad_mode_are_left_alone(build) -> None:
    model, x, y = mlp()
    sam = build(model)
    state = torch.get_rng_state()
    with torch.no_grad():
        sam.backward(lambda: F.cross_entropy(model(x), y))
        assert not torch.is_grad_enabled()
    assert torch.equal(torch.get_rng_state(), state)
    assert model[0].weight.grad is not None
