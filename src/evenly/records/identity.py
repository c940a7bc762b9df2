"""The identity of a run: every setting of its recipe, its data, and whatever else decides its result.

Runs with the same identity have the same result, and a run's folder is named by its identity. Results are looked up by
identity only, so that changed data, a changed default or other weights mean a new run, never an old result.
`evenly.training.identify` makes it. The rows of the papers' ledger have identities of their own (`papers.identity`).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from evenly.errors import DataError
from evenly.records import json_text
from evenly.typed.mappings import digest, flatten

IDENTITY = "identity.json"
VERSION = 1
# Settings that differ between the runs of one comparison, or that do not change the result.
APART = {"seed", "data.seed", "keep_epochs", "record_examples", "evaluate_every"}
_WITHIN = ("resampling.", "until.")
_EARLY = "resampling.early"  # the identity of another run, which changes with that run's data
_KINDS = {"id": str, "recipe": str, "asked": str, "kin": str, "data": dict, "given": dict}


@dataclass(frozen=True)
class Identity:
    """The identity of a run.

    Parameters
    ----------
    settings
        Every setting of the recipe, defaults included (`evenly.typed.identity_settings`).
    request
        The settings that differ from the defaults of this version, so that the user asked for them.
    data
        `name`, `fingerprint`, and `drawn_from`, which names the distribution where the seed draws the data;
        and for each of the `splits` digests of its inputs, labels, classes, attributes and order.
    given
        Digests of everything else that decides the result: indices, weights, a file, code.

    Examples
    --------
    >>> identity = Identity({"epochs": 3}, {}, {"name": "d.npz", "fingerprint": "1f"})
    >>> other = Identity({"epochs": 3}, {}, {"name": "d.npz", "fingerprint": "2e"})
    >>> len(identity.id), identity.id == other.id
    (12, False)
    """

    settings: Mapping[str, Any]
    request: Mapping[str, Any]
    data: Mapping[str, Any]
    given: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def id(self) -> str:
        """The twelve hex digits that name the run's folder."""
        return digest([VERSION, self.settings, self.data["fingerprint"], self.given], digits=12)

    def record(self) -> dict[str, Any]:
        """The record that is kept in the run's folder."""
        request = {name: value for name, value in flatten(self.request).items() if name != _EARLY}
        return {
            "version": VERSION,
            "id": self.id,
            "recipe": digest(self.settings),
            "asked": digest(request),
            "kin": comparison_key(self.settings, data=data_key(self.data), given=self.given),
            "early": flatten(self.settings).get(_EARLY),
            "data": dict(self.data),
            "given": dict(self.given),
        }

    def check(self, folder: Path) -> None:
        """Raise unless the run in `folder` has this identity, whatever the folder's name."""
        kept = read(folder)
        if kept is None:
            raise DataError(
                f"{folder} has no {IDENTITY}: it is not known which data it belongs to. "
                "Move it away and repeat the command."
            )
        wanted = self.record()
        for name in ("id", "recipe", "given", "data"):
            # The name of the data does not matter.
            same = (
                kept[name] == wanted[name] if name != "data" else kept[name]["fingerprint"] == self.data["fingerprint"]
            )
            if not same:
                raise DataError(
                    f"{folder} holds a different run than its name says: {name} in {IDENTITY} does not match this "
                    "command. Something moved or changed it: move it away and repeat the command."
                )


def read(folder: Path) -> dict[str, Any] | None:
    """The identity stored in a run's folder; None for a run of evenly 0.1, which stored none."""
    path = folder / IDENTITY
    try:
        kept = json_text.read(path)
    except FileNotFoundError:
        return None
    sound = isinstance(kept, dict) and all(isinstance(kept.get(name), kind) for name, kind in _KINDS.items())
    if not sound or not isinstance(kept["data"].get("fingerprint"), str):
        raise DataError(f"{path} is damaged: it is not an identity that evenly wrote. Restore it, or move {folder}.")
    return dict(kept)


def check_data(run: Path, data: Mapping[str, Any]) -> None:
    """Raise unless these are the data of the run in the folder `run`, as far as the folder says."""
    kept = read(run)
    if kept is not None and kept["data"]["fingerprint"] != data["fingerprint"]:
        (how,) = _data_differences(kept["data"], data)
        raise DataError(
            f"{data['name']} is not what run {run.name} was trained on: {how}. Restore the data, or train again: "
            "changed data are another run."
        )


def data_key(data: Mapping[str, Any]) -> str:
    """The data that the runs of one comparison share, or the distribution that each seed draws from."""
    return str(data.get("drawn_from") or data["fingerprint"])


def comparison_key(settings: Mapping[str, Any], *, data: str, given: Mapping[str, str]) -> str:
    """A digest shared by all runs of one comparison: any method, seed and number of epochs on the same data."""
    left = {
        name: value
        for name, value in flatten(settings).items()
        if name not in APART and name != "epochs" and not name.startswith(_WITHIN)
    }
    return digest([left, data, given])


def differences(kept: Mapping[str, Any], settings: Mapping[str, Any], now: Identity) -> list[str]:
    """How an earlier run, given by its stored identity and `settings`, differs from the same request now."""
    changes = list(_data_differences(kept["data"], now.data))
    was, wanted = flatten(settings), flatten(now.settings)
    for name, value in wanted.items():
        if name in was and name != _EARLY and digest(was[name]) != digest(value):
            changes.append(f"{name} was {was[name]!r} by default then and is {value!r} now")
    for name in sorted({*kept["given"], *now.given}):
        if kept["given"].get(name) != now.given.get(name):
            changes.append(f"its {name} differed")
    return changes


def _data_differences(was: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    if was["fingerprint"] == now["fingerprint"]:
        return
    before, after = was.get("splits", {}), now.get("splits", {})
    changed = []
    for split in dict.fromkeys([*before, *after]):
        if split not in before or split not in after:
            changed.append(f"the split {split} is {'new' if split in after else 'gone'}")
        elif before[split]["examples"] != after[split]["examples"]:
            changed.append(f"{split} had {before[split]['examples']:,} examples and has {after[split]['examples']:,}")
        elif parts := [part for part in after[split] if before[split].get(part) != after[split][part]]:
            changed.append(f"{', '.join(parts)} of {split}")
    yield f"its data were different ({'; '.join(changed) or 'it is not known which part'})"
