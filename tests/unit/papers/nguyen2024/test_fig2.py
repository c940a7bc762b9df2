"""Figure 2: both networks are drawn, and what SAM has learned is judged where it has converged."""

from pathlib import Path
from typing import Any

from evenly.papers.experiment import Context, Measured
from evenly.papers.nguyen2024.fig2 import EXPERIMENT, charts
from evenly.papers.nguyen2024.two_layer_dynamics import alignment_curves

HERE = Context(Path("unused"))
SIZE: dict[str, Any] = {"num": 60, "iterations": 30, "horizon": 20, "every": 5, "lr": 0.5}


def test_figure_2_draws_both_networks_with_their_quartiles() -> None:
    parts = {
        f"{network_}β_d = {beta}": alignment_curves(
            HERE, seeds=[0, 1, 2], name="x", beta_hard=beta, bias=not network_, **SIZE
        )
        for network_ in ("", "eq1 ")
        for beta in (0.2, 0.4)
    }
    panels = charts(Measured({}, {name: part.series for name, part in parts.items()}))
    assert len(panels) == 5
    line = panels[0].layers[0]
    assert all(low <= y <= high for low, y, high in zip(line.low, line.y, line.high, strict=True))


def test_what_is_learned_is_judged_after_800_iterations_and_the_papers_600_stay_beside_it() -> None:
    """After 600 SAM has only just learned the easy feature: nothing of what it ends with can be judged there."""
    claims = {each.name: each for each in EXPERIMENT.claims}
    for name in ("difficult at 0.2", "difficult at 0.4", "less easy at 0.2", "less easy at 0.4"):
        assert claims[name].value.endswith(".end")
        assert claims[name].after  # the numbers were known when it was moved there
    assert claims["accuracy of SAM"].value == "0.4.sam.accuracy.end"
    assert claims["difficult after 600 at 0.2"].value == "0.2.sam.hard"
