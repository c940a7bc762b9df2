"""Simplicity bias and its cure on one page: GD, SAM, USEFUL and random upsampling on toy data.

    python examples/one_page.py

The data (Nguyen et al., 2024, definition 3.1): an example is three patches in R^50, in random order. One is the
difficult feature, ±0.4·v_d, which always determines the class. One is the easy feature, ±v_e, present nine times in
ten. One is noise. A network that learned both would always be right; gradient descent learns the easy one, is right
nine times in ten, and then has little gradient left for the difficult one.

USEFUL finds the examples that lack the easy feature by early outputs, shows them twice, and trains again.

Takes about 20 seconds on one core. Prints a table (medians over 5 seeds; learning rate 0.2 for 500 iterations, where
the paper has 0.1 for 600) and saves the curves as one_page.png. Read all columns: with so few examples USEFUL's filters
align more with the difficult feature with every seed, but its test error does not fall; SAM's does.
"""

import statistics
import sys

import torch
from torch.nn import functional as F

import evenly
from evenly.intervals import paired_difference
from evenly.models import build

LR, RHO, ITERATIONS, SEPARATE_AT, EVERY = 0.2, 0.02, 500, 175, 10
METHODS = ("GD", "USEFUL", "random", "SAM")


def alignment(model, v):
    """How far the filters point along a feature: max_j |<w_j, v>|."""
    return model.alignment(v).abs().max().item()


def train(data, seed, *, rho=0.0, repeat=None, iterations=ITERATIONS):
    """Full-batch descent from the weights of `seed`; returns the network and its (easy, difficult) alignments.

    `repeat` says how often each example counts. SAM is one changed line: `sam.backward` in place of `loss.backward`;
    with rho = 0 the two are the same.
    """
    model = build("cubic", input_shape=data.shape, num_classes=2, rng=seed)
    sam = evenly.SAM(model, rho=rho)
    optimizer = torch.optim.SGD(model.parameters(), lr=LR)
    weight = torch.ones(len(data)) if repeat is None else repeat.float()

    def loss():
        each = F.cross_entropy(model(data.inputs), data.labels, reduction="none")
        return (each * weight).sum() / weight.sum()

    curve = []
    for step in range(iterations + 1):
        if step % EVERY == 0:
            curve.append((alignment(model, data.planted["easy"]), alignment(model, data.planted["hard"])))
        if step < iterations:
            sam.backward(loss)
            optimizer.step()
            optimizer.zero_grad()
    return model, curve


def one_seed(seed):
    """All four methods on the data of one seed: {method: curve}, {method: test error}, precision, recall."""
    splits = evenly.load("patches", seed=seed, num_train=1000, num_test=2000, beta_hard=0.4)
    data, test = splits.train, splits["test"]

    # The first half of USEFUL: train for a while, take the outputs, split each class in two. The part with the higher
    # loss is hard. Nothing here knows which examples have the easy patch.
    early, _ = train(data, seed, iterations=SEPARATE_AT)
    with torch.no_grad():
        separation = evenly.separate(early(data.inputs), data.labels)

    # The data record it, so we can check.
    lacking = data.attributes["easy_present"] == 0
    both = (separation.hard & lacking).sum().item()
    precision, recall = both / separation.num_hard, both / lacking.sum().item()

    # The second half: train from scratch, hard examples twice. The control shows equally many random examples twice.
    rng = torch.Generator().manual_seed(seed)
    chance = torch.zeros(len(data), dtype=torch.bool)
    chance[torch.randperm(len(data), generator=rng)[: separation.num_hard]] = True
    trained = {
        "GD": train(data, seed),
        "USEFUL": train(data, seed, repeat=separation.repeats(factor=2)),
        "random": train(data, seed, repeat=1 + chance.long()),
        "SAM": train(data, seed, rho=RHO),
    }
    curves = {method: curve for method, (_, curve) in trained.items()}
    with torch.no_grad():
        wrong = {method: (model(test.inputs).argmax(1) != test.labels) for method, (model, _) in trained.items()}
    return curves, {method: 100 * each.float().mean().item() for method, each in wrong.items()}, precision, recall


def draw(curves, path):
    """The easy and the difficult alignment over training, medians over seeds, one line for each method."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 3.5), layout="constrained")
    steps = range(0, ITERATIONS + 1, EVERY)
    for feature, (axes, name) in enumerate(zip(figure.subplots(1, 2), ("easy", "difficult"), strict=True)):
        for method in METHODS:
            moments = zip(*(seed[method] for seed in curves), strict=True)
            middle = [statistics.median(pair[feature] for pair in moment) for moment in moments]
            axes.plot(steps, middle, label=method, linestyle="--" if method == "random" else "-")
        axes.set(title=f"{name} feature", xlabel="iteration", ylabel="alignment")
    axes.legend()
    figure.savefig(path, dpi=150)


def main(num_seeds=5, picture="one_page.png"):
    """Run every seed, print the table, save the picture; returns the printed numbers."""
    torch.set_num_threads(1)
    found = [one_seed(seed) for seed in range(num_seeds)]
    curves = [each[0] for each in found]
    for seed, (_, _, precision, recall) in enumerate(found):
        print(f"seed {seed}: the separation finds the examples without the easy patch: ", end="")
        print(f"precision {precision:.2f}, recall {recall:.2f}")

    difficult = {method: [curve[method][-1][1] for curve in curves] for method in METHODS}
    easy = {method: [curve[method][-1][0] for curve in curves] for method in METHODS}
    print(f"\n{'':8}{'easy':>6}{'difficult':>11}{'test error %':>14}   difficult, against GD (mean, 95% interval)")
    for method in METHODS:
        error = statistics.mean(each[1][method] for each in found)
        row = (
            f"{method:8}{statistics.median(easy[method]):6.2f}{statistics.median(difficult[method]):11.2f}{error:14.2f}"
        )
        print(row, "" if method == "GD" else f"  {paired_difference(difficult[method], difficult['GD'])}")
    draw(curves, picture)
    print(f"\nThe curves are in {picture}.")
    return {"difficult": difficult, "easy": easy, "separations": [each[2:] for each in found]}


if __name__ == "__main__":
    main(*(int(word) for word in sys.argv[1:2]))
