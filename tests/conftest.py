"""What every test may ask for."""

import os
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from evenly.cpu_bfloat16 import LIMIT, WITHOUT_AMX, check_bfloat16_on_cpu
from evenly.errors import SetupError

# What this machine's owner has agreed to run is no business of the tests, nor theirs of the owner's.
os.environ["XDG_STATE_HOME"] = tempfile.mkdtemp(prefix="evenly-state-")
# What is remembered between commands must not come from, or stay in, the cache of whoever runs the tests.
os.environ["EVENLY_CACHE"] = tempfile.mkdtemp(prefix="evenly-cache-")

# Some virtual machines announce AMX and end a process at its first instruction: bfloat16 must then do without.
try:
    check_bfloat16_on_cpu()
except SetupError:
    os.environ[LIMIT] = WITHOUT_AMX
os.environ.setdefault(LIMIT, "ALL")  # the processes that the tests start need not try again

# Under xdist two processes share two cores: more threads only fight.
torch.set_num_threads(1)

# Files of these folders share what they train, start or draw: a worker that got a part of a file would do it again.
_WHOLE_FILES = ("browser", "integrations", "unit")


@pytest.hookimpl(tryfirst=True)  # before xdist reads the groups
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep the tests of such a file on one worker, unless they have a group already."""
    if not config.pluginmanager.hasplugin("xdist"):
        return
    folders = [Path(__file__).parent / name for name in _WHOLE_FILES]
    for item in items:
        if item.get_closest_marker("xdist_group") is None and any(map(item.path.is_relative_to, folders)):
            item.add_marker(pytest.mark.xdist_group(item.path.stem))


@pytest.fixture(scope="session")
def published() -> Callable[[str], Path]:
    """`published("cifar-10-batches-bin")`: the data root that holds the folder, or a skip that says how to get it."""
    from evenly.data.catalogue import data_root

    root = data_root(os.environ.get("EVENLY_DATA"))

    def find(folder: str) -> Path:
        if not (root / folder).exists():
            pytest.skip(f"{folder} is not in {root}: set EVENLY_DATA, or fetch it with `evenly data get`")
        return root

    return find


@pytest.fixture(scope="session")
def data_root(published: Callable[[str], Path]) -> Path:
    """The data root, or a skip where there is none."""
    return published(".")
