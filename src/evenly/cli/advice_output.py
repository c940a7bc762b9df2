"""What `evenly advise` prints: the early network, its signs, the cures of similar tasks, and the comparison to run."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from evenly.cli.advised_comparison import FEW, SEEDS
from evenly.cli.output import print_table, say
from evenly.cli.train import duration

if TYPE_CHECKING:
    from evenly.papers.atlas.advice import Advice

FIRST = 5  # cures of the ranking that are shown
LONG = 600  # seconds: a longer comparison is better begun with fewer seeds


def show_advice(found: Mapping[str, Any], advice: "Advice", *, ledger: str, pictures: bool, balanced: bool) -> None:
    """The ranking on stdout, everything else on stderr; `found` is what `--json` prints.

    `pictures` says whether inputs are, as those of the atlas, and `balanced` whether the data have such a split.
    """
    for sentence in sentences(found["features"], found["epochs"]):
        say(sentence)
    say("")
    for number, sign in enumerate(found["signs"], 1):
        say(f"{number}. {sign['seen']} {sign['advice']}")
    if advice.abstains:
        say(f"\n{_why_not(advice, ledger)}")
    else:
        _show_ranking(found, advice)
        for sentence in _remarks(found["features"], advice, pictures=pictures, balanced=balanced):
            say(sentence)
        _say_confidence(found["tested"], advice)
    say(f"To find out: {found['next']}")
    say(_cost_in_words(found["estimate"], epochs=found["epochs"]))


def _why_not(advice: "Advice", ledger: str) -> str:
    """Why the atlas abstains."""
    nearest = next(iter(advice.nearest.items()), None)
    if nearest is None:
        return (
            f"No advice from the atlas: {ledger} holds none of its tasks. `evenly reproduce atlas --scale small` "
            "measures them."
        )
    return (
        f"No advice from the atlas: none of its tasks is like this. The nearest, {_name(nearest[0])}, is "
        f"{nearest[1]:.1f} standard deviations away."
    )


def _show_ranking(found: Mapping[str, Any], advice: "Advice") -> None:
    from evenly.papers.atlas.cures import CURES

    near = ", ".join(f"{_name(key)} ({distance:.1f})" for key, distance in advice.nearest.items())
    say(f"\nThe most similar tasks of the atlas, and how far they are in standard deviations: {near}.\n")
    several = len(advice.nearest) > 1
    rows = [
        {
            "try": number,
            "cure": CURES[choice["cure"]].label,
            "balanced": (
                f"{choice['balanced']:+.1f}"
                + (f" ({choice['best']:+.1f} to {choice['worst']:+.1f})" if several else "")
            ).replace("-", "−"),
            "test": f"{choice['test']:+.2f}".replace("-", "−"),
            "cost": f"{choice['cost']:.2f}×",
        }
        for number, choice in enumerate(found["ranking"][: _num_shown(advice)], 1)
    ]
    print_table(rows, ["try", "cure", "balanced", "test", "cost"])
    say(
        "\nPoints of error minus plain training on those tasks: on data where the easy feature says nothing"
        f"{' (best to worst task)' * several}, and on the ordinary test set. All cures except the smaller batch "
        "took as many steps there as plain training. Cost: gradients relative to plain training, as `evenly compare` "
        "would take them on your data: as many epochs, copies and the early run included."
    )


def _num_shown(advice: "Advice") -> int:
    """The first few cures, and none after plain training: what did worse is nothing to try."""
    cures = [choice.cure for choice in advice.ranking]
    return min(FIRST, cures.index("plain") + 1) if "plain" in cures else FIRST


def _remarks(features: Mapping[str, float], advice: "Advice", *, pictures: bool, balanced: bool) -> list[str]:
    """What the ranking does not show: where its gains were seen, what it leaves out and why."""
    from evenly.papers.atlas.cures import CURES

    remarks, shown = [], advice.ranking[: _num_shown(advice)]
    if advice.first is not None and advice.first.split == "balanced" and not balanced:
        test = f"{advice.first.test:+z.2f}".replace("-", "−")
        remarks.append(
            f"{CURES[advice.first.cure].label} gained on data where the easy feature says nothing, and yours have no "
            f"such split: on the ordinary test set, which the comparison below is of, it changed the error by {test} "
            "points. If your network will not meet such data, there may be nothing to gain."
        )
    if not pictures and any(CURES[choice.cure].noise for choice in shown):
        remarks.append(
            "The noise of the atlas (σ = 0.2) is on pixels from 0 to 1. Your inputs are no pictures, and σ is in their "
            "own units: replace `noise:0.2` by a σ that suits their spread."
        )
    if advice.ruled_out:
        remarks.append(f"Left out, because of what the early network shows: {_labels(advice.ruled_out)}.")
    lost = [choice for choice in shown if choice.score < 0 and choice.harms_balanced]
    if lost:
        remarks.append(
            f"{'; '.join(CURES[choice.cure].label for choice in lost)}: lower test error, but a higher one where the "
            "easy feature says nothing. Only for you if such data do not matter."
        )
    tasks = dict.fromkeys(advice.harmful.values())
    for harmed in tasks:
        cures = [cure for cure, own in advice.harmful.items() if own == harmed]
        words = f"Not first: {_labels(cures)}. The ordinary test error rose on {', '.join(map(_name, harmed))}"
        if set(harmed) <= set(advice.noisier):
            shares = " and ".join(f"{advice.noisier[task]:.1%}" for task in harmed)
            words += (
                f", where {shares} of the labels contradict the early network ({features['disagreement']:.1%} here): "
                "if your labels are right, that need not happen to you"
            )
        remarks.append(f"{words}.")
    return remarks


def _say_confidence(tested: Mapping[str, int], advice: "Advice") -> None:
    if not tested["tasks"]:
        return
    say(
        f"Confidence: on atlas tasks that were held out, the first choice was as good as the best cure in "
        f"{tested['good']} of {tested['tasks']}; the same cure for all tasks would have been in at most "
        f"{tested['same_cure']}. They have small networks, few classes and a planted minority. Only a comparison shows "
        "whether your data are like them."
    )
    if advice.first is None:
        say("No cure did better than plain training on the most similar tasks.")


def _cost_in_words(cost: Mapping[str, float], *, epochs: int) -> str:
    """What the comparison takes, by the pace of the early run.

    >>> _cost_in_words({"runs": 60, "early_runs": 1234.5, "seconds": 7200.0}, epochs=15)[:73]
    'That is 60 runs, 1,234 times the gradients of the 15 epochs just trained:'
    """
    words = (
        f"That is {cost['runs']:.0f} runs, {cost['early_runs']:,.0f} times the gradients of the {epochs} epochs just "
        f"trained: about {duration(cost['seconds'])} here, one run after the other."
    )
    if cost["seconds"] < LONG:
        return words
    return (
        f"{words} `--seeds 0-{FEW - 1}` first takes {FEW / SEEDS:.0%} of that and shows large differences; fewer "
        "`--epochs` take less."
    )


def _labels(cures: "list[str] | tuple[str, ...]") -> str:
    from evenly.papers.atlas.cures import CURES

    return "; ".join(CURES[cure].label for cure in cures)


def _name(task: str) -> str:
    return task.partition("/")[2]


def sentences(features: Mapping[str, float], epochs: int) -> list[str]:
    """The features of the early network, in words.

    >>> facts = dict(epoch=4, error=0.1, hard_share=0.2, hard_error=0.4, hard_error_later=0.1, distinctness=0.2,
    ...              disagreement=0.01, agreement=0.8)
    >>> sentences(facts, 15)[0]
    'The gain in training error shrinks after epoch 4, at an error of 10.0%.'
    >>> sentences(facts, 4)[0]
    'In the first 4 epochs the gain in training error did not shrink before the last, at an error of 10.0%.'
    """
    epoch, error = round(features["epoch"]), f"{features['error']:.1%}"
    margin = round(features["distinctness"], 2) + 0.0  # as it is shown, without −0.00
    signed = f"{margin:+.2f}".replace("-", "−")
    # The features do not say whether the gain shrank in the last of these epochs or in none of them.
    came = epoch < epochs
    return [
        f"The gain in training error shrinks after epoch {epoch}, at an error of {error}."
        if came
        else f"In the first {epochs} epochs the gain in training error did not shrink before the last, at an error of "
        f"{error}.",
        f"{features['hard_share']:.0%} of the examples are in the hard clusters, which are "
        f"{'more' if margin > 0 else 'no more'} distinct than halves of one cloud ({signed}); "
        f"{features['hard_error']:.0%} of them are predicted wrongly then"
        + (f", and {features['hard_error_later']:.0%} after epoch {epochs}." if came else "."),
        f"Another network finds the same hard examples with an agreement of {features['agreement']:.2f} (1: the same, "
        f"0: chance). {_on_disagreement(features['disagreement'])}",
    ]


def _on_disagreement(share: float) -> str:
    """How many labels contradict the surest predictions, and what they may be.

    >>> _on_disagreement(0.0)
    'Of the fifth of the examples whose prediction is surest, none has another label.'
    """
    surest = "Of the fifth of the examples whose prediction is surest,"
    if not share:
        return f"{surest} none has another label."
    return (
        f"{surest} {share:.1%} have another label: wrong labels, examples whose easy feature indicates another class, "
        "or a network that has learned too little yet."
    )
