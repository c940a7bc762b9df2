"""The instruments on your own model, in your own loop: plain PyTorch in, plain numbers out.

The task is a digit 0 or 1 (easy) stacked on an even or odd digit (hard); in training they always agree, so the
network may use either. Runs in about five seconds on a CPU:

    python examples/instruments_on_your_model.py
"""

import math

import torch
from torch import nn

from evenly.curvature import density, gram, hessian, observing
from evenly.data import load
from evenly.diagnostics import Dynamics, learning_order, measure, median_map, probing_errors, reweighting
from evenly.diagnostics.importance import importance_weights

splits = load("digit-dominoes")
train, balanced = splits.train, splits["balanced"]
torch.manual_seed(0)
model = nn.Sequential(nn.Flatten(), nn.Linear(128, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Linear(64, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
inputs, test_inputs = (torch.stack([x for x, _ in part]) for part in (train, balanced))

# Your loop, with one more line: the log follows every example, whatever the order of the batches.
log, curves = Dynamics(), {"easy": [0.5], "hard": [0.5]}
for epoch in range(8):
    for batch in torch.randperm(len(train)).split(64):
        logits = model(inputs[batch])
        log.update(logits, train.labels[batch], train.index[batch], epoch=epoch)
        optimizer.zero_grad()
        nn.functional.cross_entropy(logits, train.labels[batch]).backward()
        optimizer.step()
    # On balanced data the two features disagree half of the time: which one do the predictions follow?
    with observing(model), torch.no_grad():
        answers = model(test_inputs).argmax(1)
    assert model.training  # it was measured in eval mode, and its mode is restored
    for name, curve in curves.items():
        curve.append(float((answers == balanced.attribute(name)).float().mean()))

print("agreement of the answers with each feature, epoch by epoch")
for name, curve in curves.items():
    print(f"  {name}: " + "  ".join(f"{value:.2f}" for value in curve))
for learned in learning_order(curves, ends=(0.5, 1.0)):
    when = "never" if math.isnan(learned.time) else f"after {learned.time:.1f} epochs"
    print(f"  {learned.name} is half-way there {when}")

table = log.table()
print(f"\nforgotten at least once: {int((table['forgotten'] > 0).sum())} of {len(table['index'])} examples")
hardest = table["area_under_margin"].argsort()[:5]
print(f"lowest area under the margin: examples {table['index'][hardest].tolist()}")

print("\neverything in one call")
numbers = measure(model, splits, rng=torch.Generator().manual_seed(0), examples=300)
for name, value in numbers.items():
    print(f"  {name}: " + (f"{value:.4g}" if isinstance(value, float) else f"{value}"))

# The instruments one by one. Curvature needs eval mode, in which examples are independent of each other.
model.eval()
few = balanced.subset(range(200))
spectrum = density(hessian(model, few), probes=3, steps=30, rng=torch.Generator().manual_seed(0))
share = spectrum.share_above(0.01 * spectrum.nodes.max())
print(f"\nHessian eigenvalues above a hundredth of the largest: {share:.2%} of all")
K = gram(model, few)
print(f"Gram of the examples' gradients: {tuple(K.shape)}, {int((K < 0).sum())} pairs pull against each other")

# Springer et al., appendix D: how much would SAM raise the weight of each example?
foretold = reweighting(model, few, rho=0.05)
print(f"log(λ̃/λ): median {foretold.measured.median():.3f}, foretold {foretold.predicted_logistic.median():.3f}")

# Figure 6: importance as a function of the contributions of the easy and the hard feature to the label.
probes = probing_errors(model, splits, rng=torch.Generator().manual_seed(0), refits=1)
x = torch.stack([x for x, _ in few])
with torch.no_grad():
    hidden, weights = model[:-1](x), importance_weights(model(x), few.labels)
sign = 2 * few.labels - 1
cells = median_map(
    weights,
    easy=sign * probes["easy"].contribution(hidden),
    hard=sign * probes["hard"].contribution(hidden),
    bins=3,
)
print("median importance; rows: easy feature against → for the label, columns: hard feature")
print(cells.median.round(decimals=2))
