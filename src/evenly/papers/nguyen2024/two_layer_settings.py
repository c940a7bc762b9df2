"""The settings that figures 2 and 6, section 4 and the theorems share; without torch, unlike `two_layer_dynamics`."""

from evenly.report.palette import METHODS

BETAS = (0.2, 0.4)
SEEDS = tuple(range(10))
SHOWN = {"gd": "GD", "sam": "SAM"}
COLOURS = {"gd": METHODS["plain"].colour, "sam": METHODS["sam"].colour}
NETWORKS = {"": True, "eq1 ": False}  # the beginning of quantities' names, and whether filters have a bias
TINY = ("few examples and iterations: a test of the machinery, not of the claim",)
WITH_BIAS = (
    "the network has a bias per filter and two logits, as the code that the paper's toy descends from (Deng et al., "
    "2023); eq. 1 has neither, and with it figure 2 does not come out"
)
