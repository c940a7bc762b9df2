"""What experiments would cost on GPUs: counted operations against closed forms, real shapes, and a schedule by hand."""

import json

import pytest

from evenly.data import load
from evenly.data.catalogue import entry
from evenly.papers.catalogue import CATALOGUE
from evenly.papers.full_cost import DATA, LEAST_STEP, SUSTAINED, Cost, costs, flop_of_gradient, on_clusters, trainings

FIG3 = CATALOGUE["nguyen2024/fig3"]


def test_operations_of_a_perceptron_are_those_of_its_matrix_products():
    """Forward m·n products and sums a layer, backward twice as many, but for the inputs, which need no gradient."""
    counted = flop_of_gradient("mlp", json.dumps({"width": 16, "depth": 2}), (3, 4, 4), 5)
    layers = [48 * 16, 16 * 5]
    assert counted == 2 * (3 * sum(layers) - layers[0])


def test_operations_of_preact_resnet18_are_those_that_its_paper_counts():
    """0.56 billion multiplications and additions forward, as reported for 32×32 images; three times with backward."""
    assert flop_of_gradient("preact-resnet18", "{}", (3, 32, 32), 10) == pytest.approx(2 * 3 * 0.556e9, rel=0.01)


@pytest.mark.parametrize("name", ["cifar10", "cifar-mnist", "fmnist-mnist"])
def test_shapes_and_sizes_are_those_of_the_real_data(name, data_root):
    if missing := entry(name).missing(data_root):
        pytest.skip(f"{', '.join(missing)} are not in {data_root}: `evenly data get`")
    found = load(name, root=data_root)
    shape, classes, num = DATA[name]
    assert (tuple(found.train.inputs.shape[1:]), found.num_classes, len(found.train)) == (shape, classes, num)


def test_useful_beside_plain_training_costs_the_examples_that_both_show():
    part = next(part for part in FIG3.parts("full") if part.arguments["name"] == "sgd")
    runs = list(trainings(part))
    assert [run.share for run in runs] == [1.4, 1.0]  # USEFUL with 40 % twice; plain, which holds the early run
    (cost,) = [each for each in costs([(FIG3, "full")]) if each.name == part.name]
    by_hand = 2.4 * 200 * 50_000 * flop_of_gradient("preact-resnet18", "{}", (3, 32, 32), 10)
    assert cost.flop == pytest.approx(by_hand)
    assert cost.hours == pytest.approx(by_hand / SUSTAINED / 3600)


def test_runs_that_two_figures_share_count_once():
    alone = sum(each.flop for each in costs([(FIG3, "full")]))
    table = CATALOGUE["nguyen2024/table1"]
    both = sum(each.flop for each in costs([(FIG3, "full"), (table, "full")]))
    assert both < alone + sum(each.flop for each in costs([(table, "full")]))


def test_a_small_network_takes_its_steps_not_its_operations():
    table = CATALOGUE["springer2024/table1-cifar-mnist"]
    (cost, *_) = costs([(table, "full")])
    steps = 3 * (1 + 6 * 2) * 20 * 9_000 / 100  # three rates, SGD and six radii of two passes, twenty epochs
    assert cost.hours == pytest.approx(steps * LEAST_STEP / 3600)


def test_toys_take_the_minutes_of_two_cores():
    fig2 = CATALOGUE["springer2024/fig2"]
    found = costs([(fig2, "full")])
    assert sum(each.hours for each in found) == pytest.approx(fig2.scales["full"].minutes / 60)
    assert {each.flop for each in found} == {0}
    (fewer,) = {sum(each.hours for each in costs([(fig2, "full")], {fig2.key: seeds})) for seeds in ([0, 1], [7, 8])}
    assert fewer == pytest.approx(fig2.scales["full"].minutes / 60 * 2 / len(fig2.scales["full"].seeds))


def test_parts_are_shared_out_the_longest_first():
    parts = [Cost("a/x", str(hours), 0.0, hours) for hours in (1.0, 3.0, 2.0, 2.0)]
    few, many = on_clusters(parts, (2, 8))
    assert (few["hours"], few["busy"]) == (4.0, 1.0)
    assert (many["hours"], many["longest"], many["busy"]) == (3.0, 3.0, 8 / 24)
