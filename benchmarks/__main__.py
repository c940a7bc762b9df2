"""`python -m benchmarks [FILTER]`: run the benchmarks whose name contains FILTER."""

import argparse
import importlib
import pkgutil
import sys

import benchmarks
from benchmarks import harness


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("filter", nargs="?", default="", help="part of a name; all by default")
    parser.add_argument("--list", action="store_true", help="list names and claims, run nothing")
    asked = parser.parse_args()
    for module in pkgutil.iter_modules(benchmarks.__path__):
        if module.name.startswith("bench_"):
            importlib.import_module(f"benchmarks.{module.name}")
    names = [name for name in sorted(harness.REGISTRY) if asked.filter in name]
    if not names:
        print(f"no benchmark contains {asked.filter!r}. Known: {', '.join(sorted(harness.REGISTRY))}.", file=sys.stderr)
        return 2
    if asked.list:
        for name in names:
            print(f"{name}\t{harness.REGISTRY[name].target}\t{harness.REGISTRY[name].claim}")
        return 0
    return 0 if harness.run(names) else 1


sys.exit(main())
