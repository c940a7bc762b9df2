"""Deep feature reweighting (DFR): refit the last layer on data with balanced groups.

Shapes: N examples, D features, C classes.
"""

import contextlib
from collections.abc import Iterator, Mapping

import torch
from torch import Tensor, nn

from evenly.data import Labelled
from evenly.errors import DataError, UsageError
from evenly.models.observation import observing

NUM_TRIED = 8  # examples that show which layer makes the outputs


def retrain_last_layer(
    model: nn.Module,
    split: Labelled,
    *,
    by: str | None = None,
    strength: float = 1.0,
    head: str | None = None,
    batch_size: int = 512,
    rng: torch.Generator | None = None,
) -> nn.Linear:
    """A last layer fitted by logistic regression to the inputs of the model's last layer on a held-out `split`.

    Networks that rely on an easy feature have often learned the hard one too, but give it little weight (Kirichenko et
    al., 2022). The layer minimises

        strength · Σ_i cross-entropy(W·φ̂(x_i) + b, y_i) + ½‖W‖²

    with features φ̂ standardised on `split`, as scikit-learn's `LogisticRegression(C=strength)` does; the returned layer
    takes features as they are. In place of a layer without bias one without bias is fitted: features are then divided
    by their root mean square and not centred, which would take a bias to undo. With `by`, the name of an attribute
    such as `group`, as many examples of each of its values are taken. The authors use an ℓ1 penalty chosen on held-out
    data and average over ten such subsets.

    The model does not change: put the layer in its place with `setattr`, or call it on features.

    >>> from evenly.data import load
    >>> data = load("spirals")
    >>> network = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
    >>> network[2] = retrain_last_layer(network, data["balanced"])
    """
    rows = balanced_rows(split, by, rng)
    like = next((p for p in model.parameters() if p.is_floating_point()), torch.empty(0))

    def inputs(part: Tensor) -> Tensor:
        x = split.gather(part).to(like.device)
        if x.dtype == torch.uint8:
            return x.to(like.dtype).div_(255)
        return x.to(like.dtype) if x.is_floating_point() else x

    layer = output_layer(model, inputs(rows[:NUM_TRIED]), split.num_classes, head)
    with observing(model), torch.no_grad(), watch_inputs(layer) as seen:
        for part in torch.split(rows, batch_size):
            model(inputs(part))
    return fit(layer, torch.cat(seen), split, rows, strength=strength)


def fit(layer: nn.Linear, features: Tensor, split: Labelled, rows: Tensor, *, strength: float = 1.0) -> nn.Linear:
    """A layer like `layer`, with a bias if it has one, fitted to the features and labels of `rows` of `split`."""
    if not strength > 0:
        raise UsageError(f"strength={strength}: the weight of the data against the penalty is above 0; 1 is usual.")
    feature_ND, labels_N = features.flatten(1), split.labels.cpu()[rows]
    if len(feature_ND) != len(rows):
        raise UsageError("the last linear layer is not called once per example: name the right one with head=.")
    if len(set(labels_N.tolist())) < 2:
        raise DataError(f"{split.name} {split.split}: a last layer needs examples of two classes or more to be fitted.")
    has_bias = layer.bias is not None
    if has_bias:
        mean_D, scale_D = feature_ND.mean(dim=0), feature_ND.std(dim=0, correction=0)
    else:
        mean_D, scale_D = torch.zeros_like(feature_ND[0]), feature_ND.square().mean(dim=0).sqrt()
    scale_D = torch.where(scale_D > 0, scale_D, 1.0)
    weight_CD, bias_C = logistic_regression(
        (feature_ND - mean_D) / scale_D, labels_N, split.num_classes, strength, intercept=has_bias
    )
    weight_CD = weight_CD / scale_D
    bias_C = bias_C - weight_CD @ mean_D
    if layer.out_features == 1:
        weight_CD, bias_C = weight_CD[1:] - weight_CD[:1], bias_C[1:] - bias_C[:1]
    # Without first weights: they would be drawn from the caller's random numbers.
    like = layer.weight
    fitted = nn.Linear(layer.in_features, layer.out_features, bias=has_bias, device="meta", dtype=like.dtype)
    fitted = fitted.to_empty(device="cpu")
    with torch.no_grad():
        fitted.weight.copy_(weight_CD)
        if has_bias:
            fitted.bias.copy_(bias_C)
    return fitted.to(like.device)


def logistic_regression(
    x_ND: Tensor, labels_N: Tensor, num_classes: int, strength: float, *, intercept: bool = True
) -> tuple[Tensor, Tensor]:
    """The minimiser of strength·Σ cross-entropy + ½‖W‖² over W and b, in float64 by L-BFGS from zero.

    Without `intercept`, b is zero.

    >>> weight, bias = logistic_regression(torch.tensor([[-1.0], [1.0]]), torch.tensor([0, 1]), 2, 1.0)
    >>> torch.allclose(weight[0], -weight[1]), bool(weight[1] > 0)
    (True, True)
    """
    x_ND = x_ND.double()
    weight_CD = torch.zeros(num_classes, x_ND.shape[1], dtype=torch.float64, requires_grad=True)
    bias_C = torch.zeros(num_classes, dtype=torch.float64, requires_grad=intercept)
    unknown = [weight_CD, bias_C] if intercept else [weight_CD]
    solver = torch.optim.LBFGS(
        unknown, max_iter=2_000, tolerance_grad=1e-9, tolerance_change=1e-14, line_search_fn="strong_wolfe"
    )

    def loss() -> float:
        solver.zero_grad()
        fit = nn.functional.cross_entropy(x_ND @ weight_CD.T + bias_C, labels_N, reduction="mean")
        # The mean, not the sum: gradients of order one, whatever the number of examples.
        total = fit + weight_CD.square().sum() / (2 * strength * len(x_ND))
        total.backward()  # type: ignore[no-untyped-call]  # torch's own
        return float(total.detach())

    solver.step(loss)  # type: ignore[no-untyped-call]  # torch's own
    return weight_CD.detach(), bias_C.detach()


def output_layer(model: nn.Module, inputs: Tensor, num_classes: int, head: str | None = None) -> nn.Linear:
    """The linear layer that makes the model's outputs, whatever the order in which its layers were declared.

    It is found by a trial on some inputs, with random weights in every layer that has as many outputs as the model: the
    outputs of the model must be those of the layer, up to a positive factor and a constant for each example, as after
    a log-softmax. The model is left as it was. A layer that is named by `head` is taken without trial.

    >>> network = nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 3))
    >>> output_layer(network, torch.rand(5, 4), 3) is network[2]
    True
    """
    layers = {name: module for name, module in model.named_modules() if isinstance(module, nn.Linear)}
    kind = type(model).__name__
    if not layers:
        raise UsageError(f"{kind} has no linear layer to retrain.")
    widths = (num_classes, 1) if num_classes == 2 else (num_classes,)
    able = {name: layer for name, layer in layers.items() if layer.out_features in widths}
    if head is not None:
        if head not in able:
            kinds = ", ".join(f"{name} ({layer.out_features} outputs)" for name, layer in layers.items())
            raise UsageError(
                f"head={head!r} is not a linear layer of the model with {num_classes} outputs, one per class. "
                f"It has {kinds}."
            )
        return layers[head]
    outputs, seen = _trial(model, able, inputs)
    makers = [name for name, calls in seen.items() if len(calls) == 1 and _same_scores(calls[0], outputs)]
    if not makers:
        raise UsageError(
            f"{kind}: none of its linear layers makes its outputs alone, so none can be refitted for all of it. It has "
            f"{', '.join(layers)}. Return the outputs of one of them, with a column for each class; "
            "retrain_last_layer(…, head=…) fits the one that you name."
        )
    return layers[makers[-1]]


def _trial(model: nn.Module, layers: Mapping[str, nn.Linear], inputs: Tensor) -> tuple[Tensor, dict[str, list[Tensor]]]:
    """The model's outputs and those of each layer on some inputs, with random weights in these layers."""
    rng = torch.Generator().manual_seed(0)
    seen: dict[str, list[Tensor]] = {name: [] for name in layers}
    weights = {
        f"{name}.{each}" if name else each: torch.randn(p.shape, generator=rng).to(p)
        for name, layer in layers.items()
        for each, p in layer.named_parameters()
    }
    hooks = [
        layer.register_forward_hook(lambda _, __, out, calls=seen[name]: calls.append(out.detach().double().cpu()))
        for name, layer in layers.items()
    ]
    try:
        with observing(model), torch.no_grad():
            outputs = torch.func.functional_call(model, weights, (inputs,))
    finally:
        for hook in hooks:
            hook.remove()
    if not isinstance(outputs, Tensor):
        raise UsageError(
            f"{type(model).__name__} returns a {type(outputs).__name__}, not a tensor: name a layer by head=."
        )
    return outputs.detach().double().cpu(), seen


def _same_scores(scores_NC: Tensor, outputs_NC: Tensor) -> bool:
    """Whether scores and outputs are equal up to a positive factor and a constant for each example."""
    if scores_NC.shape != outputs_NC.shape:
        return False
    if scores_NC.shape[1] > 1:
        scores_NC, outputs_NC = (each - each.mean(dim=1, keepdim=True) for each in (scores_NC, outputs_NC))
    if not scores_NC.any():  # of features that are all zero
        return not outputs_NC.any()
    factor = (scores_NC * outputs_NC).sum() / scores_NC.square().sum()
    tolerance = 1e-3 * float(outputs_NC.abs().max())
    return bool(factor > 0) and torch.allclose(factor * scores_NC, outputs_NC, rtol=1e-3, atol=tolerance)


def balanced_rows(split: Labelled, by: str | None, rng: torch.Generator | None = None) -> Tensor:
    """Rows of the split with as many of each value of the attribute `by`; all rows where it is None."""
    if by is None:
        return torch.arange(len(split))
    value_N = split.attribute(by).cpu()
    rng = torch.Generator().manual_seed(0) if rng is None else rng
    members = [(value_N == value).nonzero().flatten() for value in sorted(set(value_N.tolist()))]
    fewest = min(map(len, members))
    return torch.cat([rows[torch.randperm(len(rows), generator=rng)[:fewest]] for rows in members]).sort().values


@contextlib.contextmanager
def watch_inputs(layer: nn.Linear) -> Iterator[list[Tensor]]:
    """Within the context, every batch of inputs to `layer` is appended to the list, in float64 on the CPU."""
    seen: list[Tensor] = []
    hook = layer.register_forward_pre_hook(lambda _, given: seen.append(given[0].detach().double().cpu()))
    try:
        yield seen
    finally:
        hook.remove()
