"""A package's public names are what they say, whichever of its modules were imported before."""

import pkgutil
import subprocess
import sys

import evenly

# In a process of its own: what is imported here already must not decide.
LOOK = """
import importlib, sys, types
names = sys.argv[1:]
for name in names:
    try:
        importlib.import_module(name)
    except Exception:  # an optional package is not installed
        continue
for name in names:
    package = sys.modules.get(name)
    for public in getattr(package, "__all__", ()) if hasattr(package, "__path__") else ():
        if isinstance(getattr(package, public), types.ModuleType):
            print(f"{name}.{public}")
"""


def test_no_public_name_is_hidden_by_a_module_of_the_same_name() -> None:
    modules = ["evenly", *(found.name for found in pkgutil.walk_packages(evenly.__path__, "evenly."))]
    modules = [name for name in modules if not name.endswith("__main__")]
    found = subprocess.run([sys.executable, "-c", LOOK, *modules], capture_output=True, text=True, timeout=600)
    assert found.returncode == 0, found.stderr
    assert found.stdout.split() == []
