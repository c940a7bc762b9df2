"""LSAM in one pass: bit for bit what two passes give, on models of many shapes."""

import copy
import math

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

import evenly
from evenly.errors import UsageError


class Residual(nn.Module):
    """A head in the middle of the registration order, functional steps, BatchNorm and something after the head."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(6, 3)
        self.blocks = nn.ModuleList([nn.Linear(4, 4), nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4))])
        self.out = nn.Linear(4, 6)
        self.temperature = nn.Parameter(torch.tensor(1.5))
        self.after = nn.Softplus()

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        for block in self.blocks:
            x = x + torch.tanh(block(x))
        return {"logits": self.after(self.fc(F.relu(self.out(x)))) * self.temperature}


class Nested(nn.Module):
    """The head lies deep, and the body is called twice."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Linear(4, 4)
        self.classifier = nn.Sequential(nn.Linear(4, 5), nn.GELU(), nn.Linear(5, 3))

    def forward(self, x: Tensor) -> Tensor:
        return self.classifier(self.stem(torch.tanh(self.stem(x))))


def convolutional() -> nn.Module:
    return nn.Sequential(
        nn.Unflatten(1, (1, 2, 2)), nn.Conv2d(1, 4, 2), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(4, 3)
    )


MODELS = {
    "mlp": (lambda: nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 3)), None),
    "convolutional": (convolutional, None),
    "residual": (Residual, "fc"),
    "nested": (Nested, None),
    "head is a block": (Nested, "classifier"),
}


def loss_of(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    output = model(x)
    return F.cross_entropy(output["logits"] if isinstance(output, dict) else output, y)


def two_passes(model: nn.Module, head: nn.Module, rho: float, x: Tensor, y: Tensor) -> list[Tensor]:
    """The definition, written out: ṽ = v + ρ∇_v L/‖∇_v L‖, and the gradient there."""
    v = list(head.parameters())
    g = torch.autograd.grad(loss_of(model, x, y), v)
    norm = math.hypot(*(t.norm().item() for t in g))
    kept = [p.detach().clone() for p in v]
    tracking = [m for m in model.modules() if isinstance(m, nn.modules.batchnorm._BatchNorm)]
    for p, t in zip(v, g, strict=True):
        p.data.add_(t, alpha=rho / norm)
    for m in tracking:
        m.track_running_stats = False
    result = torch.autograd.grad(loss_of(model, x, y), list(model.parameters()))
    for m in tracking:
        m.track_running_stats = True
    for p, old in zip(v, kept, strict=True):
        p.data.copy_(old)
    return list(result)


def build(name: str) -> tuple[nn.Module, str | None, Tensor, Tensor]:
    torch.manual_seed(0)
    make, head = MODELS[name]
    return make(), head, torch.randn(8, 4), torch.randint(3, (8,))


@pytest.mark.parametrize("name", MODELS)
def test_one_pass_is_bitwise_equal_to_two_and_runs_the_body_once(name: str) -> None:
    model, head, x, y = build(name)
    twin, *_ = build(name)
    lsam = evenly.LSAM(model, rho=0.7, head=head)
    calls = {n: 0 for n, m in model.named_modules() if not list(m.children()) and n}
    for n in calls:
        module = model.get_submodule(n)
        forward = module.forward

        def counted(*args: Tensor, n: str = n, forward=forward) -> Tensor:
            calls[n] += 1
            return forward(*args)

        module.forward = counted
    loss = lsam.backward(lambda: loss_of(model, x, y))
    expected = two_passes(twin, twin.get_submodule(lsam.head_name), 0.7, x, y)
    for p, g in zip(model.parameters(), expected, strict=True):
        assert torch.equal(p.grad, g)
    assert loss == loss_of(build(name)[0], x, y)
    assert all(torch.equal(a, b) for a, b in zip(model.buffers(), twin.buffers(), strict=True))
    inside = [n for n in calls if n == lsam.head_name or n.startswith(lsam.head_name + ".") or n == "after"]
    body = {n: c for n, c in calls.items() if n not in inside}
    assert all(calls[n] == 2 for n in inside)
    assert all(c == (2 if n == "stem" else 1) for n, c in body.items()), body


@pytest.mark.parametrize("name", MODELS)
def test_two_general_passes_with_the_head_alone_displaced_agree_too(name: str) -> None:
    model, head, x, y = build(name)
    twin, *_ = build(name)
    lsam = evenly.LSAM(model, rho=0.7, head=head)
    lsam.backward(lambda: loss_of(model, x, y))
    evenly.SAM(twin, rho=0.7, where=twin.get_submodule(lsam.head_name)).backward(lambda: loss_of(twin, x, y))
    for p, q in zip(model.parameters(), twin.parameters(), strict=True):
        assert torch.equal(p.grad, q.grad)


class InPlace(nn.Module):
    """Changes in place what its body returned, in one of the ways that models do."""

    def __init__(self, way: str) -> None:
        super().__init__()
        self.way, self.body, self.relu = way, nn.Linear(4, 5), nn.ReLU(inplace=True)
        self.pair, self.head = Pair(), nn.Linear(5, 3)

    def forward(self, x: Tensor) -> Tensor:
        h = self.body(x)
        extra: Tensor | float = 0.0
        if self.way == "add":
            h += 1.0
        elif self.way == "relu":  # as DenseNet does
            h = F.relu(h, inplace=True)
        elif self.way == "view":
            h.view(-1).mul_(2.0)
        elif self.way == "read before":
            extra = h.mean()
            h = self.relu(h)
        elif self.way == "result unused":
            self.relu(h)
        elif self.way == "list":
            several = self.pair(h)
            h = several.pop() + several[0]
        return self.head(h) + extra


class Pair(nn.Module):
    def forward(self, x: Tensor) -> list[Tensor]:
        return [x.tanh(), x.sigmoid()]


@pytest.mark.parametrize("way", ["add", "relu", "view", "read before", "result unused", "list"])
def test_a_model_that_changes_outputs_of_its_body_gets_the_gradient_of_two_passes(way: str) -> None:
    found = []
    for one in (True, False):
        torch.manual_seed(0)
        model, x, y = InPlace(way), torch.randn(8, 4), torch.randint(3, (8,))
        sam = evenly.LSAM(model, rho=0.5) if one else evenly.SAM(model, rho=0.5, where="head.*")
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(2):
            model.zero_grad()
            sam.backward(lambda: loss_of(model, x, y))  # noqa: B023
            optimizer.step()
        found.append([t for p in model.parameters() for t in (p.detach(), p.grad)])
        if one:
            assert sam.passes == (1 if way == "list" else 2)
            assert sam.replay.kept == {}
            assert not any("forward" in m.__dict__ for m in model.modules())
    assert all(torch.equal(a, b) for a, b in zip(*found, strict=True))


def test_a_module_that_works_in_place_costs_no_second_pass() -> None:
    """As in ResNet, whose `relu` changes what `bn1` returned."""

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv, self.norm, self.relu = nn.Linear(4, 5), nn.BatchNorm1d(5), nn.ReLU(inplace=True)
            self.fc = nn.Linear(5, 3)

        def forward(self, x: Tensor) -> Tensor:
            return self.fc(self.relu(self.norm(self.conv(x))))

    torch.manual_seed(0)
    model, x, y = Net(), torch.randn(8, 4), torch.randint(3, (8,))
    twin, calls = copy.deepcopy(model), []
    sam = evenly.LSAM(model, rho=0.5)
    forward = model.conv.forward
    model.conv.forward = lambda x: calls.append(0) or forward(x)
    sam.backward(lambda: loss_of(model, x, y))
    evenly.SAM(twin, rho=0.5, where="fc.*").backward(lambda: loss_of(twin, x, y))
    assert (len(calls), sam.passes) == (1, 1)
    assert all(torch.equal(p.grad, q.grad) for p, q in zip(model.parameters(), twin.parameters(), strict=True))


def test_inputs_may_be_given_by_name() -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body, self.head = nn.Linear(4, 5), nn.Linear(5, 3)

        def forward(self, x: Tensor) -> Tensor:
            return self.head(input=self.body(input=x))

    torch.manual_seed(0)
    x, y = torch.randn(8, 4), torch.randint(3, (8,))
    for model, head in ((Net(), "head"), (nn.Sequential(nn.Linear(4, 5), nn.Linear(5, 3)), "1")):
        name = "x" if head == "head" else "input"
        twin = copy.deepcopy(model)
        evenly.LSAM(model, rho=0.5).backward(lambda: F.cross_entropy(model(**{name: x}), y))  # noqa: B023
        evenly.SAM(twin, rho=0.5, where=f"{head}.*").backward(lambda: F.cross_entropy(twin(x), y))  # noqa: B023
        assert all(torch.equal(p.grad, q.grad) for p, q in zip(model.parameters(), twin.parameters(), strict=True))


def test_the_norm_is_the_heads_not_the_networks() -> None:
    """f = v·θ·x: with θ's gradient far larger than v's, a whole-model norm would hardly move v."""
    net = nn.Sequential(nn.Linear(1, 1, bias=False), nn.Linear(1, 1, bias=False))
    net[0].weight.data.fill_(0.001)
    net[1].weight.data.fill_(5.0)
    evenly.LSAM(net, rho=0.5).backward(lambda: net(torch.ones(1, 1)).sum())
    assert net[0].weight.grad.item() == pytest.approx(5.5)  # ṽ = v + ρ


def test_a_model_called_twice_in_one_closure() -> None:
    model, _, x, y = build("convolutional")
    model.eval()

    def closure() -> Tensor:
        return F.cross_entropy(model(x), y) + F.cross_entropy(model(-x), y)

    evenly.LSAM(model, rho=0.3).backward(closure)
    one = [p.grad.clone() for p in model.parameters()]
    model.zero_grad()
    evenly.SAM(model, rho=0.3, where=model[5]).backward(closure)
    for p, g in zip(model.parameters(), one, strict=True):
        assert torch.equal(p.grad, g)


def test_a_compiled_body() -> None:
    torch._dynamo.reset()
    model, _, x, y = build("mlp")
    twin, *_ = build("mlp")
    split = nn.Sequential(torch.compile(model[:2], backend="aot_eager"), model[2])
    evenly.LSAM(split, rho=0.3).backward(lambda: loss_of(split, x, y))
    evenly.LSAM(twin, rho=0.3).backward(lambda: loss_of(twin, x, y))
    for p, q in zip(split.parameters(), twin.parameters(), strict=True):
        torch.testing.assert_close(p.grad, q.grad)


def test_dropout_in_the_body_is_drawn_once() -> None:
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(4, 20), nn.Dropout(0.5), nn.Linear(20, 3))
    x, y = torch.randn(8, 4), torch.randint(3, (8,))
    torch.manual_seed(3)
    evenly.LSAM(net, rho=0.3).backward(lambda: loss_of(net, x, y))
    after = torch.rand(1)
    torch.manual_seed(3)
    net(x)
    assert torch.equal(after, torch.rand(1))


@pytest.mark.parametrize("options", [{"m": 4}, {"fraction": 0.5}, {"weight_decay": 0.1}, {"every": 2}])
def test_options_go_with_it(options: dict) -> None:
    model, _, x, y = build("mlp")
    twin, *_ = build("mlp")
    a, b = evenly.LSAM(model, rho=0.3, **options), evenly.SAM(twin, rho=0.3, where=twin[2], **options)
    for _ in range(2):
        a.backward(lambda x, y: loss_of(model, x, y), x, y)
        b.backward(lambda x, y: loss_of(twin, x, y), x, y)
    for p, q in zip(model.parameters(), twin.parameters(), strict=True):
        assert torch.equal(p.grad, q.grad)


def test_a_head_with_buffers_advances_them_once() -> None:
    torch.manual_seed(0)
    head = nn.utils.parametrizations.spectral_norm(nn.Linear(6, 3))
    model, x = nn.Sequential(nn.Linear(4, 6), nn.Tanh(), head), torch.randn(5, 4)
    twin = copy.deepcopy(model)
    twin(x)
    evenly.LSAM(model, rho=0.3).backward(lambda: model(x).square().mean())
    for a, b in zip(model.buffers(), twin.buffers(), strict=True):
        assert torch.equal(a, b)


def test_random_numbers_after_the_head_are_repeated_too() -> None:
    torch.manual_seed(0)
    model, x = nn.Sequential(nn.Linear(4, 6), nn.Dropout(0.5), nn.Linear(6, 3)), torch.randn(5, 4)
    masks = []

    def closure() -> Tensor:
        out = F.dropout(model(x), 0.5)
        masks.append(out == 0)
        return out.square().mean()

    evenly.LSAM(model, rho=0.3, same_dropout=True).backward(closure)
    assert torch.equal(*masks)


def test_nothing_stays_on_the_modules_and_no_graph_is_kept() -> None:
    model, _, x, y = build("convolutional")
    lsam = evenly.LSAM(model)
    lsam.backward(lambda: loss_of(model, x, y))
    with pytest.raises(ZeroDivisionError):
        lsam.backward(lambda: 1 / 0)
    assert not any("forward" in m.__dict__ for m in model.modules())
    assert lsam.replay.kept == {}


def tied() -> nn.Module:
    net = nn.Sequential(nn.Embedding(7, 3), nn.Flatten(), nn.Linear(3, 7, bias=False))
    net[2].weight = net[0].weight
    return net


@pytest.mark.parametrize(
    ("make", "options", "message"),
    [
        (lambda: nn.Sequential(nn.Conv1d(1, 1, 1)), {}, "no nn.Linear"),
        (lambda: nn.Sequential(nn.Linear(2, 2)), {"head": "fc"}, "head='fc' is not a module"),
        (lambda: nn.Sequential(nn.Linear(2, 2)), {"head": nn.Linear(2, 2)}, "is not a module of the model"),
        (lambda: nn.Sequential(nn.Linear(2, 2), nn.ReLU()), {"head": "1"}, "no parameters to displace"),
        (lambda: nn.Sequential(nn.Linear(2, 2)), {"where": "0.*"}, "head="),
        (tied, {}, "shares a parameter"),
        (lambda: [nn.Parameter(torch.ones(1))], {}, "pass the model"),
    ],
)
def test_a_head_that_cannot_be_is_refused(make, options: dict, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        evenly.LSAM(make(), **options)


def test_a_head_that_is_never_reached_or_lies_inside_another_module_is_refused() -> None:
    model = Nested()
    model.spare = nn.Linear(4, 3)
    with pytest.raises(UsageError, match="'spare' was never reached"):
        evenly.LSAM(model).backward(lambda: model(torch.ones(2, 4)).sum())

    class Caller(nn.Module):
        def __init__(self, head: nn.Module) -> None:
            super().__init__()
            self.inner = nn.Linear(4, 4)
            self.unregistered = [head]

        def forward(self, x: Tensor) -> Tensor:
            return self.unregistered[0](self.inner(x))

    class Around(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.head = nn.Linear(4, 3)
            self.net = Caller(self.head)

        def forward(self, x: Tensor) -> Tensor:
            return self.net(x)

    around = Around()
    with pytest.raises(UsageError, match="called inside 'net'"):
        evenly.LSAM(around, head="head").backward(lambda: around(torch.ones(2, 4)).sum())
    assert not any("forward" in m.__dict__ for m in around.modules())


def test_a_frozen_head_is_refused() -> None:
    model, _, x, y = build("mlp")
    model[2].requires_grad_(False)
    with pytest.raises(UsageError, match="is frozen"):
        evenly.LSAM(model).backward(lambda: loss_of(model, x, y))
