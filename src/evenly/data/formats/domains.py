"""DomainBed's data sets: the same classes drawn, painted and photographed in several domains."""

from collections.abc import Sequence
from pathlib import Path

from evenly import rng
from evenly.data.formats.class_folders import class_folders, quote_names
from evenly.data.formats.image_files import Size
from evenly.data.formats.listing import Listing, by_split, number_groups
from evenly.data.formats.locate import locate
from evenly.data.splits import Splits
from evenly.errors import DataError, UsageError, did_you_mean


def pacs(*, root: Path, target: str | None = None, size: Size | None = None, skip_broken: bool = False) -> Splits:
    """PACS (Li et al., 2017): 9,991 images, 7 classes in art_painting, cartoon, photo and sketch.

    With `target`, that domain is held out: the other three make train (80 %), validation (10 %) and test (10 %),
    the held-out one makes `target_train` (80 %) and `target_test` (20 %). Without, all four are cut 80/10/10.
    The cut is fixed, per domain, as in DomainBed (Gulrajani & Lopez-Paz, 2021), and does not change when files
    are added elsewhere. Attributes: `domain`, and `group` = num_domains · label + domain.

    >>> pacs(root=Path("nowhere"))
    Traceback (most recent call last):
    evenly.data.formats.locate.Missing: PACS was not found. Looked for nowhere/PACS.
    """
    folder = locate("PACS", root, ["PACS"])
    domains = ("art_painting", "cartoon", "photo", "sketch")
    return _domains("pacs", folder, domains, target=target, size=size, skip_broken=skip_broken)


def vlcs(*, root: Path, target: str | None = None, size: Size | None = 224, skip_broken: bool = False) -> Splits:
    """VLCS (Fang et al., 2013): 5 classes in Caltech101, LabelMe, SUN09 and VOC2007; split as `pacs`.

    >>> vlcs(root=Path("nowhere"))
    Traceback (most recent call last):
    evenly.data.formats.locate.Missing: VLCS was not found. Looked for nowhere/VLCS.
    """
    folder = locate("VLCS", root, ["VLCS"])
    domains = ("Caltech101", "LabelMe", "SUN09", "VOC2007")
    return _domains("vlcs", folder, domains, target=target, size=size, skip_broken=skip_broken)


def office_home(*, root: Path, target: str | None = None, size: Size | None = 224, skip_broken: bool = False) -> Splits:
    """Office-Home (Venkateswara et al., 2017): 65 classes in Art, Clipart, Product and Real World; split as `pacs`.

    >>> office_home(root=Path("nowhere"))
    Traceback (most recent call last):
    evenly.data.formats.locate.Missing: Office-Home was not found. Looked for nowhere/office_home or nowhere/OfficeHome.
    """
    folder = locate("Office-Home", root, ["office_home", "OfficeHome"])
    domains = ("Art", "Clipart", "Product", "Real World")
    return _domains("office-home", folder, domains, target=target, size=size, skip_broken=skip_broken)


def fixed_split(name: str, files: Sequence[str], shares: dict[str, float]) -> list[str]:
    """A split for every file: a fixed shuffle by file name alone, cut at the cumulated `shares`.

    >>> parts = fixed_split("demo", [f"{i}.png" for i in range(10)], {"train": 0.8, "test": 0.2})
    >>> parts.count("train"), parts.count("test")
    (8, 2)
    """
    order = sorted(range(len(files)), key=lambda i: rng.key(0, "split", name, files[i]))
    split_of = [""] * len(files)
    start, cumulated = 0, 0.0
    for split, share in shares.items():
        cumulated += share
        end = round(cumulated * len(files))
        for i in order[start:end]:
            split_of[i] = split
        start = end
    return split_of


def _domains(
    name: str, folder: Path, domains: tuple[str, ...], *, target: str | None, size: Size | None, skip_broken: bool
) -> Splits:
    if target is not None and target not in domains:
        raise UsageError(f"{name} has no domain {target!r} to hold out. {did_you_mean(target, domains)}")
    files_by_domain = {
        domain: class_folders(locate(f"{domain}, a domain of {name},", folder, [domain])) for domain in domains
    }
    classes = tuple(sorted(set().union(*files_by_domain.values())))
    for domain, files_by_class in files_by_domain.items():
        lacking = [c for c in classes if c not in files_by_class]
        if lacking:
            raise DataError(f"{folder / domain}: has no folder for class {quote_names(lacking)}, other domains do.")
    names: list[str] = []
    labels: list[int] = []
    domain_of: list[int] = []
    split_of: list[str] = []
    for number, (domain, files_by_class) in enumerate(files_by_domain.items()):
        inside = [(f"{domain}/{file}", label) for label, c in enumerate(classes) for file in files_by_class[c]]
        held_out = {"target_train": 0.8, "target_test": 0.2}
        shares = held_out if domain == target else {"train": 0.8, "validation": 0.1, "test": 0.1}
        names += [file for file, _ in inside]
        labels += [label for _, label in inside]
        domain_of += [number] * len(inside)
        split_of += fixed_split(name, [file for file, _ in inside], shares)
    listing = Listing(
        folder,
        names,
        labels,
        classes,
        {"domain": domain_of, "group": number_groups(labels, domain_of, num_values=len(domains)).tolist()},
        {"domain": domains, "group": tuple(f"{c}, {d}" for c in classes for d in domains)},
    )
    return by_split(name, listing.to_labelled(size=size, skip_broken=skip_broken), split_of)
