"""Benchmarks: ratios against peers, measured in one run, never absolute times.

`python -m benchmarks [FILTER]` runs every benchmark whose name contains FILTER and writes RESULTS.md; rows of
benchmarks that did not run stay as they were. A benchmark is a generator of ratios in a module `bench_*.py`:

    from benchmarks.harness import benchmark, interleaved

    @benchmark("data-order", claim="a stateless order costs little more than randperm", at_most=20)
    def order_against_randperm():
        yield from interleaved(lambda: order(50_000, seed=0, epoch=0), lambda: torch.randperm(50_000))

`interleaved(ours, peer)` times both in turns and yields time(ours)/time(peer) without end; the harness takes as
many as it wants and closes the generator. With `at_least` the ratio is turned round: how many times faster.
A benchmark whose data or program is absent raises `Missing` with the line that helps.
"""
