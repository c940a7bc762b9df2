"""Colours can be seen by everyone, on white and on dark, and mean one thing."""

from itertools import combinations

import numpy as np
import pytest
from numpy.typing import NDArray

from evenly.report.chart import Bars, Chart, Line, bar_colours, layer_colours
from evenly.report.palette import EASY, HARD, METHODS, SERIES, colour_of, display_name, is_control

Colour = NDArray[np.float64]
GROUNDS = {"light": "#FFFFFF", "dark": "#1B1F24"}  # of the cards of a page
# Machado, Oliveira & Fernandes (2009), severity 1.
SIGHTS = {
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]],
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "full": np.eye(3).tolist(),
}
XYZ = np.array([[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.072175], [0.0193339, 0.119192, 0.9503041]])


def linear(colour: str) -> Colour:
    signal = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    return np.where(signal <= 0.04045, signal / 12.92, ((signal + 0.055) / 1.055) ** 2.4)


def contrast(first: str, second: str) -> float:
    """WCAG 2.2: (L₁ + 0.05)/(L₂ + 0.05) of the relative luminances."""
    low, high = sorted(float(XYZ[1] @ linear(colour)) for colour in (first, second))
    return (high + 0.05) / (low + 0.05)


def difference(first: str, second: str, sight: str) -> float:
    """CIE 1976 ΔE*ab, as seen with this sight."""

    def lab(colour: str) -> Colour:
        seen = np.clip(np.array(SIGHTS[sight]) @ linear(colour), 0, 1)
        x = XYZ @ seen / np.array([0.95047, 1, 1.08883])
        f = np.where(x > 0.008856, np.cbrt(x), 7.787 * x + 16 / 116)
        return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])

    return float(np.linalg.norm(lab(first) - lab(second)))


@pytest.mark.parametrize("ground", GROUNDS.values())
def test_every_line_has_a_contrast_of_three_to_one_on_white_and_on_dark(ground: str) -> None:
    for colour in {*(method.colour for method in METHODS.values()), *SERIES, EASY, HARD}:
        assert contrast(colour, ground) >= 3, colour


@pytest.mark.parametrize("sight", SIGHTS)
def test_methods_and_the_usual_controls_are_told_apart_by_every_sight(sight: str) -> None:
    usual = {name: METHODS[name] for name in ("plain", "random", "steps", "useful", "sam", "sam+useful")}
    for (one, a), (other, b) in combinations(usual.items(), 2):
        if a.is_control == b.is_control:  # else a line is dashed and the other is not
            assert difference(a.colour, b.colour, sight) >= 10, (one, other)
    assert difference(EASY, HARD, sight) >= 50


def test_easy_and_hard_have_hues_that_no_method_has() -> None:
    for method in METHODS.values():
        assert min(difference(method.colour, hue, "full") for hue in (EASY, HARD)) > 20, method.name


def test_a_name_means_one_colour_however_it_is_spelled() -> None:
    assert len({colour_of(name) for name in ("plain", "original", "SGD", "gradient descent", "original data")}) == 1
    assert display_name("none") == "plain"
    assert display_name("sam+useful") == "SAM + USEFUL"
    assert is_control("equal steps")
    assert not is_control("SAM")


def test_a_method_keeps_its_colour_whatever_turn_it_has() -> None:
    lines = [Line("density", [1], [1]), Line("SAM", [1], [1], colour=0), Line("USEFUL, factor 5", [1], [1])]
    hues = [colour for _, colour in layer_colours(Chart("", "", "", lines, "Three lines."))]
    assert hues[1:] == [METHODS["sam"].colour, METHODS["useful"].colour]


def test_bars_of_two_optimizers_keep_the_colour_of_their_optimizer() -> None:
    sgd, sam = (Bars(name, ["upweighted", "USEFUL"], [9, 8]) for name in ("SGD", "SAM"))
    chart = Chart("Error", "", "%", [sgd, sam], "SAM is lower.")
    assert bar_colours(chart, sam, METHODS["sam"].colour) == [METHODS["sam"].colour] * 2
