"""A plan is a graph without cycles, and its order follows from what each job needs."""

import pytest

from evenly.errors import UsageError
from evenly.sweep import Job, Plan

NOTHING = "evenly.sweep.worker:do_nothing"


def test_layers_hold_what_needs_only_the_layers_before():
    jobs = [
        Job("early 0", NOTHING),
        Job("useful 0", NOTHING, needs=("early 0",)),
        Job("plain 0", NOTHING),
        Job("compare", NOTHING, needs=("useful 0", "plain 0")),
    ]
    layers = [[job.name for job in layer] for layer in Plan(jobs).layers()]
    assert layers == [["early 0", "plain 0"], ["useful 0"], ["compare"]]


def test_the_order_in_a_layer_is_that_of_the_plan():
    jobs = [Job(f"early {n}", NOTHING) for n in range(5)]
    jobs += [Job(f"late {n}", NOTHING, needs=(f"early {n}",)) for n in (3, 1, 4, 0, 2)]
    assert [job.name for job in Plan(jobs).layers()[1]] == ["late 3", "late 1", "late 4", "late 0", "late 2"]


@pytest.mark.parametrize(
    ("jobs", "told"),
    [
        ([Job("a", NOTHING), Job("a", NOTHING)], "two jobs named 'a'"),
        ([Job("late", NOTHING, needs=("erly",)), Job("early", NOTHING)], "Did you mean 'early'"),
        ([Job("a", NOTHING, needs=("b",)), Job("b", NOTHING, needs=("a",))], "needs itself"),
        ([Job("a", NOTHING, needs=("a",))], "needs itself"),
        ([Job("a", NOTHING, {"path": object()})], "not plain JSON"),
    ],
)
def test_a_plan_that_cannot_be_carried_out_is_refused(jobs, told):
    with pytest.raises(UsageError, match=told):
        Plan(jobs)


def test_planning_ten_thousand_jobs_looks_at_each_need_once():
    looked = 0

    class Counting(tuple):
        def __iter__(self):
            nonlocal looked
            looked += 1
            return super().__iter__()

    def cost(number: int) -> int:
        nonlocal looked
        looked = 0
        jobs = [Job(f"early {n}", NOTHING) for n in range(number)]
        jobs += [Job(f"late {n}", NOTHING, needs=Counting((f"early {n}",))) for n in range(number)]
        Plan(jobs).layers()
        return looked

    assert cost(2000) == 10 * cost(200)


def test_equal_plans_have_equal_digests_and_others_do_not():
    one, two = Plan([Job("a", NOTHING, {"n": 1})]), Plan([Job("a", NOTHING, {"n": 2})])
    assert one.digest == Plan([Job("a", NOTHING, {"n": 1})]).digest != two.digest
