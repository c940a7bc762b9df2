"""Signs in a run's records of what to try first: its curve, its worst groups, its separation, its sharpness."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from evenly.records import Run, json_text
from evenly.resampling.distinctness import may_be_chance
from evenly.resampling.health import Health
from evenly.resampling.moment import MAX_ACCURACY
from evenly.resampling.separation import Separation

HELD_OUT = ("test", "validation")
FALLS = 0.1  # share of the training error: after a larger fall in the last quarter of the epochs, learning continues
FITTED = 0.05  # a training error below this leaves little to learn
GAP = 0.5  # share of the held-out error: a training error below this suggests memorisation
WORSE = 2.0  # multiple of the error: a group or class whose error is higher stands out
POINTS = 0.05  # and by at least this much
BY_CLUSTERS = ("useful", "upweight", "reweight", "balance")  # methods that need a group which the outputs show
AGREEMENT = 0.2  # with less agreement on what is hard, two networks have found no common group


class Sign(NamedTuple):
    """An observation, and what it suggests."""

    seen: str
    advice: str
    #: The methods that would test the advice.
    methods: tuple[str, ...] = ()
    #: Words of methods that it rules out.
    against: tuple[str, ...] = ()


def signs_of_run(run: Run) -> list[Sign]:
    """The signs in a run's records, the most urgent first; for a run that ended early, only whether it learned.

    If a run learned nothing, that is the only sign: it must be fixed first.
    """
    summary, recipe = run.summary(), run.recipe
    if "collapsed" in summary:
        what, _, remedy = str(summary["collapsed"]).partition(". ")
        return [Sign(f"Run {run.id} {what}.", f"Fix that before comparing methods. {remedy}".strip())]
    if recipe.get("until", {}).get("rule", "end") != "end":
        if summary.get("rule_fired", True):
            return []
        return [
            Sign(
                f"In {summary.get('epoch')} epochs the fall in training error did not slow to a tenth of its fastest.",
                "Train for more --epochs: hard examples cannot yet be distinguished from examples not yet learned.",
                against=BY_CLUSTERS,
            )
        ]
    return [*_on_curve(run.metrics()), *_on_errors(summary), *_on_sharpness(run)]


def signs_of_separation(
    separation: Separation, health_: Health, *, agreement: float | None = None, too_early: bool = False
) -> list[Sign]:
    """The signs in an early network's outputs: a fit of everything, wrong labels, whether there is a group to upsample.

    `agreement` is how well its hard examples match another network's, if known: 1 the same, 0 chance. `too_early` says
    that hard examples cannot yet be told from examples not yet learned: then no group is claimed.
    """
    signs = []
    num, without = len(health_.distinctness), len(health_.indistinct)
    fitted = separation.accuracy > MAX_ACCURACY
    # What such a network shows may be noise, unless another network shows it too: clusters tell, accuracy does not.
    found_again = 2 * without < num and agreement is not None and agreement >= AGREEMENT
    if fitted:
        signs.append(_on_fit(separation.accuracy, f"{num - without} of {num}", agreement if found_again else None))
    if health_.noise:
        assert health_.noise.share is not None
        signs.append(
            Sign(
                f"About {health_.noise.share:.1%} of the labels contradict what the network is sure of.",
                "Look at them first (`evenly separate` lists them): copies repeat wrong labels.",
            )
        )
    if num and may_be_chance(health_.distinctness.values()):
        found = num - without
        signs.append(
            Sign(
                f"{found} of {num} classes {'falls' if found == 1 else 'fall'} into two clusters, no more than by "
                "chance."
                if found
                else f"None of {num} classes falls into two clusters.",
                "USEFUL has no group to upsample and would repeat noise: try SAM, a smaller batch or augmentation.",
                ("sam", "batch"),
                BY_CLUSTERS,
            )
        )
    elif num and agreement is not None and agreement < AGREEMENT:
        signs.append(
            Sign(
                f"{num - without} of {num} classes fall into two clusters, but another network finds other hard "
                f"examples (agreement {agreement:.2f}).",
                "Which examples are hard is a matter of the seed here, so USEFUL would upsample at random: try SAM, a "
                "smaller batch or augmentation.",
                ("sam", "batch"),
                BY_CLUSTERS,
            )
        )
    elif num and not too_early and (found_again or not fitted):
        signs.append(
            Sign(
                f"{num - without} of {num} classes fall into two clusters; {separation.share:.0%} of the examples are "
                "hard.",
                "They may be the wrong labels themselves, which USEFUL among the correctly predicted examples leaves "
                "out. If the labels are right and an easy feature misleads, add noise to USEFUL's copies instead."
                if health_.noise
                else "USEFUL has a group to upsample: only a gain beyond that of as many random examples is its own.",
                ("useful+right", "useful+noise", "random+noise") if health_.noise else ("useful", "random", "batch"),
            )
        )
    return signs


def _on_fit(accuracy: float, clustered: str, agreement: float | None) -> Sign:
    """The sign of a network that fits nearly everything; `agreement` is known if another one finds its clusters too."""
    seen = f"The network fits {accuracy:.2%} of the training set already when its outputs are separated"
    if agreement is not None:
        return Sign(
            f"{seen}, but {clustered} classes still fall into two clusters, and another network finds the same hard "
            f"examples (agreement {agreement:.2f}).",
            "Look at some of them before they are upsampled: an earlier epoch should find them too (`evenly separate "
            "DATA --at-epoch`).",
        )
    return Sign(
        f"{seen}.",
        "What it learned early can no longer be told from what it learned late, so USEFUL would repeat noise: separate "
        "after an earlier epoch (`evenly separate DATA --at-epoch`), or try SAM, a smaller batch or augmentation.",
        ("sam", "batch"),
        BY_CLUSTERS,
    )


def _on_curve(history: Sequence[Mapping[str, Any]]) -> list[Sign]:
    errors = [float(row["train.error"]) for row in history if isinstance(row.get("train.error"), int | float)]
    if len(errors) < 4 or errors[-1] < FITTED:
        return []
    before = errors[-1 - len(errors) // 4]
    if before - errors[-1] < FALLS * before:
        return []
    return [
        Sign(
            f"The training error was still falling at the end, from {_percent(before)} to {_percent(errors[-1])} in "
            "the last quarter of the epochs.",
            "Train for longer first: methods cannot be told apart by how soon they were stopped.",
        )
    ]


def _on_errors(summary: Mapping[str, Any]) -> list[Sign]:
    split = next((name for name in HELD_OUT if f"{name}.error" in summary), None)
    if split is None:
        return [
            Sign(
                "No examples were held out: only the training error is known.",
                "Hold some out: --set data.validation=0.2.",
            )
        ]
    error, train = float(summary[f"{split}.error"]), float(summary.get("train.error", 1.0))
    signs = []
    start = f"{split}.worst."
    worst = {name.removeprefix(start): float(value) for name, value in summary.items() if name.startswith(start)}
    groups = {name: value for name, value in worst.items() if name != "class"} or worst
    name = max(groups, key=lambda each: groups[each], default=None)
    if name is not None and groups[name] > max(WORSE * error, error + POINTS):
        what = "class" if name == "class" else f"group of {name!r}"
        signs.append(
            Sign(
                f"The worst {what} errs at {_percent(groups[name])} where all together err at {_percent(error)}.",
                "Compare methods by that group: USEFUL and JTT are for minorities, the mean hides them."
                if name != "class"
                else "Look at that class first (`evenly report`): its labels, its size, what it is taken for.",
            )
        )
    if error - train > POINTS and train < GAP * error:
        signs.append(
            Sign(
                f"The training error is {_percent(train)}, that on {split} {_percent(error)}.",
                "The network has memorised the training set: try augmentation (--set augment=[pad-crop,mirror]), more "
                "data, or SAM.",
            )
        )
    return signs


def _on_sharpness(run: Run) -> list[Sign]:
    """The largest eigenvalue of the Hessian beside gradient descent's limit of stability, if it was measured."""
    files = sorted((run.path / "measurements").glob("epoch-*.json"))
    measured = json_text.read(files[-1]) if files else {}
    largest = measured.get("lambda_max") if isinstance(measured, dict) else None
    optimizer = run.recipe.get("optimizer", {})
    if not isinstance(largest, int | float) or str(optimizer.get("name", "")).lower() != "sgd":
        return []
    limit = 2 * (1 + float(optimizer.get("momentum", 0.0))) / float(optimizer["lr"])
    if largest <= limit:
        return []
    return [
        Sign(
            f"The minimum is sharper (λ₁ = {largest:.3g}) than gradient descent can stay at with the highest learning "
            f"rate of this run ({limit:.3g}).",
            "It was reached after the learning rate had fallen. SAM prefers flatter minima: compare it; `evenly "
            f"stability threshold --run {run.id[:7]}` tells more.",
        )
    ]


def _percent(share: float) -> str:
    return f"{share:.1%}"
