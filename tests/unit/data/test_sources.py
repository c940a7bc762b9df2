"""The table of published data sets holds together, and costs no torch to read."""

import re
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from evenly.data.fetch.publication import Source
from evenly.data.fetch.sources import SOURCES, source
from evenly.errors import UsageError

NAMES = [
    "mnist", "fashion-mnist", "cifar10", "cifar100", "stl10", "cinic10", "tiny-imagenet",
    "waterbirds", "celeba", "pacs", "vlcs", "office-home",
]  # fmt: skip
EACH = pytest.mark.parametrize("each", SOURCES.values(), ids=lambda each: each.name)


def test_every_promised_data_set_is_there() -> None:
    assert list(SOURCES) == NAMES
    assert all(name == each.name for name, each in SOURCES.items())


@EACH
def test_what_is_fetched_has_a_digest_and_what_has_none_is_fetched_by_hand(each: Source) -> None:
    for archive in each.archives:
        assert bool(archive.urls) != bool(each.by_hand)
        if archive.urls:
            assert archive.md5 or archive.sha256


@EACH
def test_digests_and_addresses_are_well_formed(each: Source) -> None:
    md5s = [a.md5 for a in each.archives] + [f.md5 for layout in each.layouts for f in layout.files]
    assert all(re.fullmatch("[0-9a-f]{32}", md5) for md5 in md5s if md5)
    assert all(re.fullmatch("[0-9a-f]{64}", a.sha256) for a in each.archives if a.sha256)
    for archive in each.archives:
        schemes = [urlsplit(url).scheme for url in archive.urls]
        assert schemes == sorted(schemes, reverse=True), "https is asked first"
        assert all(scheme in ("http", "https") for scheme in schemes)
    assert urlsplit(each.page).netloc


def test_no_digest_stands_for_two_files() -> None:
    digests = [f.md5 for s in SOURCES.values() for layout in s.layouts for f in layout.files if f.md5]
    repeated = {digest for digest in digests if digests.count(digest) > 1}
    assert repeated == set()


@EACH
def test_archives_fill_the_preferred_layout(each: Source) -> None:
    layout = each.layouts[0]
    assert layout.files or layout.images
    for archive in each.archives:
        assert Path(archive.into).is_relative_to(layout.folder)
        if not archive.packed:
            assert archive.name in [file.path for file in layout.files]


@pytest.mark.parametrize(
    ("name", "folder"),
    [
        ("mnist", "MNIST/raw"),
        ("fashion-mnist", "FashionMNIST/raw"),
        ("cifar10", "cifar-10-batches-bin"),
        ("cifar100", "cifar-100-binary"),
        ("stl10", "stl10_binary"),
        ("cinic10", "CINIC-10"),
        ("tiny-imagenet", "tiny-imagenet-200"),
        ("waterbirds", "waterbird_complete95_forest2water2"),
        ("celeba", "celeba"),
        ("pacs", "PACS"),
        ("vlcs", "VLCS"),
        ("office-home", "office_home"),
    ],
)
def test_folders_are_those_other_libraries_use(name: str, folder: str) -> None:
    assert source(name).folder == folder


@pytest.mark.parametrize(("name", "total"), [("pacs", 9_991), ("vlcs", 10_729), ("office-home", 15_588)])
def test_domains_add_up_to_the_published_total(name: str, total: int) -> None:
    assert sum(images.number for images in source(name).layouts[0].images) == total


def test_sizes_follow_from_the_formats() -> None:
    sizes = {name: [file.size for file in SOURCES[name].layouts[0].files] for name in ("cifar10", "cifar100", "stl10")}
    assert sizes["cifar10"] == [10_000 * (1 + 3 * 32 * 32)] * 6
    assert sizes["cifar100"] == [50_000 * (2 + 3 * 32 * 32), 10_000 * (2 + 3 * 32 * 32)]
    assert sizes["stl10"] == [5_000 * 3 * 96 * 96, 5_000, 8_000 * 3 * 96 * 96, 8_000]
    assert [f.size for f in SOURCES["mnist"].layouts[1].files] == [
        16 + 60_000 * 28 * 28,
        8 + 60_000,
        16 + 10_000 * 28 * 28,
        8 + 10_000,
    ]


@EACH
def test_instructions_name_page_place_and_command(each: Source) -> None:
    if not each.by_hand:
        return
    text = each.instructions(Path("the-root"))
    assert each.page in text
    assert f"the-root/{each.folder}" in text
    assert f"evenly data get {each.name}" in text
    assert all(archive.name in text for archive in each.archives)


def test_unknown_name_suggests_the_nearest() -> None:
    with pytest.raises(UsageError, match=r"no published data set 'cifar_10'\. Did you mean 'cifar10'"):
        source("cifar_10")


def test_looking_up_verifying_and_fetching_import_no_torch() -> None:
    code = "import sys, evenly.data.fetch.get, evenly.data.fetch.verify; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
