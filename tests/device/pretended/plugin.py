"""For pytest in a process of its own: `-p pretended.plugin` gives every test the pretended device."""

import pretended  # noqa: F401  # before torch
