"""Every data set by name: its description, its loader, and `load`, which loads any of them.

This module is free of torch until something is loaded.
"""

import inspect
import os
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

from evenly.errors import DataError, UsageError, did_you_mean

if TYPE_CHECKING:
    from evenly.data.splits import Splits


@dataclass(frozen=True)
class Entry:
    """A data set of the catalogue: its kind, a one-line description, and its loader."""

    name: str
    kind: Literal["toy", "embedded", "published", "stacked"]
    summary: str
    maker: str
    needs: tuple[str, ...] = ()

    def options(self) -> Mapping[str, inspect.Parameter]:
        """The options of the data set, apart from its folder and seed."""
        parameters = inspect.signature(self.function()).parameters
        return {name: p for name, p in parameters.items() if name not in ("root", "rng")}

    def missing(self, root: Path) -> list[str]:
        """The published data sets it is made of that are not under `root`."""
        from evenly.data.fetch.sources import SOURCES

        def is_on_disk(name: str) -> bool:
            return any((root / layout.folder).is_dir() for layout in SOURCES[name].layouts)

        return [name for name in self.needs if not is_on_disk(name)]

    def function(self) -> Any:
        """The function that makes it."""
        module, name = self.maker.split(":")
        return getattr(import_module(f"evenly.data.{module}"), name)


_ENTRIES = (
    Entry(
        "patches", "toy", "definition 3.1 of Nguyen et al.: easy, difficult and noise patches", "toy.patches:patches"
    ),
    Entry("spirals", "toy", "Springer et al.: an easy line and a hard spiral", "toy.spirals:spirals"),
    Entry("parity", "toy", "Chang & Khanna: the ±1 cube with y = x0·x1", "toy.parity:parity"),
    Entry("digits", "embedded", "8×8 handwritten digits that ship with scikit-learn", "digits:digits"),
    Entry("digit-dominoes", "embedded", "a digit 0/1 on an even/odd digit", "dominoes:digit_dominoes"),
    Entry("mnist", "published", "28×28 handwritten digits", "formats.idx:mnist", ("mnist",)),
    Entry("fashion-mnist", "published", "28×28 articles of clothing", "formats.idx:fashion_mnist", ("fashion-mnist",)),
    Entry("cifar10", "published", "32×32 colour images, 10 classes", "formats.cifar:cifar10", ("cifar10",)),
    Entry("cifar100", "published", "32×32 colour images, 100 classes", "formats.cifar:cifar100", ("cifar100",)),
    Entry("stl10", "published", "96×96 colour images, 10 classes", "formats.stl10:stl10", ("stl10",)),
    Entry(
        "cinic10", "published", "CIFAR-10 with small ImageNet, 10 classes", "formats.image_trees:cinic10", ("cinic10",)
    ),
    Entry("tiny-imagenet", "published", "64×64, 200 classes", "formats.image_trees:tiny_imagenet", ("tiny-imagenet",)),
    Entry(
        "waterbirds",
        "published",
        "birds on land and water, 95% spurious",
        "formats.groups:waterbirds",
        ("waterbirds",),
    ),
    Entry("celeba", "published", "faces: blond hair, correlated with gender", "formats.groups:celeba", ("celeba",)),
    Entry(
        "pacs", "published", "7 classes in 4 domains: photo, art, cartoon, sketch", "formats.domains:pacs", ("pacs",)
    ),
    Entry("vlcs", "published", "5 classes in 4 photographic collections", "formats.domains:vlcs", ("vlcs",)),
    Entry("office-home", "published", "65 classes in 4 domains", "formats.domains:office_home", ("office-home",)),
    Entry("cifar-mnist", "stacked", "MNIST 0/1 on CIFAR-10 plane/car", "dominoes:cifar_mnist", ("cifar10", "mnist")),
    Entry(
        "fmnist-mnist",
        "stacked",
        "five digits on five articles of clothing",
        "dominoes:fmnist_mnist",
        ("fashion-mnist", "mnist"),
    ),
)
CATALOGUE: Mapping[str, Entry] = {entry.name: entry for entry in _ENTRIES}
_OWN = {
    "": "own.folders:folder",
    ".csv": "own.manifests:manifest",
    ".tsv": "own.manifests:manifest",
    ".parquet": "own.manifests:manifest",
    ".npz": "own.arrays:arrays",
}
HUGGING_FACE = "hf:"  # begins the name or path of a data set of Hugging Face


def data_root(given: str | os.PathLike[str] | None = None) -> Path:
    """The folder of published data: `given`, else `EVENLY_DATA`, else the user's data folder.

    >>> data_root("here").name
    'here'
    """
    if given:
        return Path(given).expanduser()
    if os.environ.get("EVENLY_DATA"):
        return Path(os.environ["EVENLY_DATA"]).expanduser()
    home = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    return Path(home) / "evenly"


def entry(name: str) -> Entry:
    """The catalogue's entry of that name.

    >>> entry("spiral")
    Traceback (most recent call last):
    evenly.errors.UsageError: there is no data set 'spiral'. Did you mean 'spirals'? Data of your own ...
    """
    if name not in CATALOGUE:
        raise UsageError(
            f"there is no data set {name!r}. {did_you_mean(name, CATALOGUE)} "
            "Data of your own are given by their path (there is none of this name here): a folder of class folders, "
            "a .csv or .parquet manifest, or an .npz file."
        )
    return CATALOGUE[name]


def load(
    source: str | os.PathLike[str],
    *,
    root: str | os.PathLike[str] | None = None,
    seed: int = 0,
    validation: float | None = None,
    held_out: float | None = None,
    **options: Any,
) -> "Splits":
    """The data set of that name, or the user's own at that path, as `Splits`.

    Parameters
    ----------
    source
        A name of the catalogue; or the path of a folder with a folder per class, of a `.csv` or `.parquet`
        manifest, or of an `.npz` file; or `hf:` and the name or path of a data set of Hugging Face.
    root
        The folder of published data; by default `EVENLY_DATA` or the user's data folder.
    seed
        Decides what is drawn: the examples of toy data, the pairing of stacked images. Real images and their
        published splits do not depend on it.
    validation
        A share of the training examples to hold out as `validation` where there is no such split.
    held_out
        Of your own data without any other split than `train`, the share of every class to hold out as `test`: a fifth
        unless `validation` is given, and 0 for none.
    options
        Options of the data set, such as `beta_hard=0.4` for `patches`.

    Examples
    --------
    >>> load("parity", dim=10).train
    <parity train: 100 examples of 10, 2 classes, attributes x0, x1>
    """
    own = is_path(source)
    splits = _own(source, options) if own else _load_known(str(source), root, seed, options)
    if own or held_out is not None:
        from evenly.data.held_out import with_test

        splits = with_test(splits, share=held_out, has_validation=bool(validation))
    if validation is None:
        return splits
    from evenly.data.held_out import with_validation

    made = with_validation(splits, share=validation)
    made.drawn_from += f" validation={validation}" if made.drawn_from else ""
    return made


def _load_known(name: str, root: str | os.PathLike[str] | None, seed: int, options: Mapping[str, Any]) -> "Splits":
    from evenly.data.formats.locate import Missing
    from evenly.rng import generator

    known = entry(name)
    options = _check_options(name, options, known.options())
    function = known.function()
    given: dict[str, Any] = {}
    parameters = inspect.signature(function).parameters
    if "root" in parameters:
        given["root"] = data_root(root)
    if "rng" in parameters:
        given["rng"] = generator(seed, "data", name)
    try:
        splits: Splits = function(**given, **options)
    except Missing as error:
        missing = known.missing(data_root(root)) or known.needs
        fetch = f"evenly data get {' '.join(missing)}"
        raise DataError(f"{error} Get it with `{fetch}`, or set EVENLY_DATA to the folder that holds it.") from None
    if "rng" in parameters:
        splits.drawn_from = f"{name}({', '.join(f'{key}={options[key]!r}' for key in sorted(options))})"
    return splits


def options_of(source: str | os.PathLike[str]) -> Mapping[str, inspect.Parameter]:
    """The options of `load(source, …)` by name, apart from folder and seed.

    >>> list(options_of("parity"))
    ['num_train', 'num_test', 'dim']
    """
    if not is_path(source):
        return entry(str(source)).options()
    return dict(list(inspect.signature(_maker(source)).parameters.items())[1:])


def _own(source: str | os.PathLike[str], options: Mapping[str, Any]) -> "Splits":
    options = _check_options(str(source), options, options_of(source))
    hub = str(source).startswith(HUGGING_FACE)
    splits: Splits = _maker(source)(source if hub else Path(source), **options)
    return splits


def _maker(source: str | os.PathLike[str]) -> Any:
    if str(source).startswith(HUGGING_FACE):
        return Entry(str(source), "embedded", "", "own.hugging_face:hugging_face").function()
    path = Path(source)
    if not os.path.exists(path):  # nor does a name that is too long to be one, which Path.exists raises at
        raise DataError(f"{path} does not exist. Give a folder with a folder per class, a manifest or an .npz file.")
    suffix = "" if path.is_dir() else path.suffix.lower()
    if suffix not in _OWN or (suffix == "" and path.is_file()):
        raise DataError(
            f"{path}: cannot tell what kind of data this is. Give a folder with a folder per class, a manifest "
            "(.csv, .parquet) or arrays (.npz)."
        )
    return Entry(path.name, "embedded", "", _OWN[suffix]).function()


def is_path(source: str | os.PathLike[str]) -> bool:
    """A name of the catalogue wins over a folder of the same name: write ./mnist for the folder."""
    if not isinstance(source, str):
        return True
    if source.startswith(HUGGING_FACE):
        return True
    # An empty word, such as an unset shell variable, would be the path of the current folder.
    return source not in ("", *CATALOGUE) and (os.sep in source or Path(source).suffix != "" or os.path.exists(source))


def _check_options(name: str, options: Mapping[str, Any], known: Mapping[str, inspect.Parameter]) -> dict[str, Any]:
    """The options, checked to be among `known` and of the annotated type."""
    from evenly.typed.values import Bounds, convert

    checked = {}
    for option, value in options.items():
        if option not in known:
            raise UsageError(f"{name} has no option {option!r}. {did_you_mean(option, known)}")
        kind, usual = known[option].annotation, known[option].default
        if usual is None:  # a share, or a number of examples
            usual = 0.5 if float in get_args(kind) else 8
        checked[option] = convert(kind, value, path=option, bounds=Bounds(), example=usual)
    return checked
