"""Suspects: wrong labels found at the head of the ranking, against cleanlab's order of the same outputs; a count."""

from collections.abc import Iterator
from itertools import count

import torch
from torch import nn

from benchmarks.harness import benchmark
from evenly.data import load
from evenly.data.class_balanced_rows import evenly_over
from evenly.data.planted import other_class
from evenly.models import build
from evenly.resampling.suspects import suspects

NUM, WRONG = 3_000, 90
FIRST = 5_000  # draws that no setting of the ranking was chosen on


@benchmark(
    "suspects",
    claim="of 90 wrong labels in 3,000 pictures of CIFAR-10, those among the first 90 of the ranking after four epochs "
    "of convnet, against cleanlab's order by self-confidence of the same outputs: hits, a draw and a network each turn",
    at_least=1,
)
def hits() -> Iterator[float]:
    from cleanlab.rank import get_self_confidence_for_each_label

    data = load("cifar10").train
    for draw in count(FIRST):
        rng = torch.Generator().manual_seed(draw)
        rows = evenly_over(data.labels, NUM, rng=rng)
        x, true = data.inputs[rows].float() / 255, data.labels[rows]
        x = (x - x.mean((0, 2, 3), keepdim=True)) / x.std((0, 2, 3), keepdim=True)
        wrong = torch.zeros(NUM, dtype=torch.bool)
        wrong[torch.rand(NUM, generator=rng).argsort()[:WRONG]] = True
        labels = torch.where(wrong, other_class(true, 10, torch.rand(NUM, generator=rng)), true)
        network = build("convnet", input_shape=(3, 32, 32), num_classes=10, rng=rng)
        optimizer = torch.optim.SGD(network.parameters(), lr=0.05, momentum=0.9, weight_decay=5e-4)
        for _ in range(4):
            for part in torch.randperm(NUM, generator=rng).split(64):
                optimizer.zero_grad()
                nn.functional.cross_entropy(network(x[part]), labels[part]).backward()
                optimizer.step()
        with torch.no_grad():
            logits = network.eval()(x)
        quality = torch.as_tensor(get_self_confidence_for_each_label(labels.numpy(), logits.softmax(1).numpy()))
        ours = int(wrong[suspects(logits, labels).ranking[:WRONG]].sum())
        theirs = int(wrong[quality.argsort()[:WRONG]].sum())
        yield theirs / ours
