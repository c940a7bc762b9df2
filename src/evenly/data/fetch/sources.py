"""Where published data come from: who publishes them, what to fetch, and what must be there afterwards.

Checksums are those that the publishers print or that torchvision and TensorFlow Datasets check; where none
is published, sizes fixed by the format and published counts of images stand in.
"""

from collections.abc import Mapping
from types import MappingProxyType

from evenly.data.fetch.publication import Archive, File, Images, Layout, Source
from evenly.errors import UsageError, did_you_mean


def source(name: str) -> Source:
    """The published data set called `name`.

    >>> source("cifar10").folder
    'cifar-10-batches-bin'
    >>> source("cifar-10")
    Traceback (most recent call last):
    evenly.errors.UsageError: there is no published data set 'cifar-10'. Did you mean 'cifar10' or 'cifar100'?
    """
    if name not in SOURCES:
        raise UsageError(f"there is no published data set {name!r}. {did_you_mean(name, SOURCES)}")
    return SOURCES[name]


_IDX = {
    "train-images-idx3-ubyte": 47_040_016,
    "train-labels-idx1-ubyte": 60_008,
    "t10k-images-idx3-ubyte": 7_840_016,
    "t10k-labels-idx1-ubyte": 10_008,
}


def _idx(
    folder: str, mirrors: tuple[str, ...], rows: tuple[tuple[int, str, str], ...]
) -> tuple[tuple[Archive, ...], tuple[Layout, ...]]:
    """The four files of the MNIST family, a row each: size and md5 gzipped, as they are kept, and md5 unzipped."""
    archives = tuple(
        Archive(f"{name}.gz", folder, tuple(f"{at}/{name}.gz" for at in mirrors), size, md5, packed=False)
        for name, (size, md5, _) in zip(_IDX, rows, strict=True)
    )
    zipped = tuple(File(a.name, a.size, a.md5) for a in archives)
    unzipped = tuple(File(name, size, md5) for (name, size), (*_, md5) in zip(_IDX.items(), rows, strict=True))
    return archives, (Layout(folder, zipped), Layout(folder, unzipped))


_MNIST = _idx(
    "MNIST/raw",
    ("https://ossci-datasets.s3.amazonaws.com/mnist", "https://storage.googleapis.com/cvdf-datasets/mnist"),
    (
        (9_912_422, "f68b3c2dcbeaaa9fbdd348bbdeb94873", "6bbc9ace898e44ae57da46a324031adb"),
        (28_881, "d53e105ee54ea40749a09fcbcd1e9432", "a25bea736e30d166cdddb491f175f624"),
        (1_648_877, "9fb629c4189551a2d022fa330f9573f3", "2646ac647ad5339dbf082846283269ea"),
        (4_542, "ec29112dd5afa0611ce80d1b7f02629c", "27ae3e4e09519cfbb04c329615203637"),
    ),
)
_FASHION = _idx(
    "FashionMNIST/raw",
    (
        "https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/master/data/fashion",
        "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com",
    ),
    (
        (26_421_880, "8d4fb7e6c68d591d4c3dfef9ec88bf0d", "f4a8712d7a061bf5bd6d2ca38dc4d50a"),
        (29_515, "25c81989df183df01b3e8a0aad5dffbe", "9018921c3c673c538a1fc5bad174d6f9"),
        (4_422_102, "bef4ecab320f06d8554ea6380940ec79", "8181f5470baa50b63fa0f6fddb340f0a"),
        (5_148, "bb300cfdad3c16e7a12a480ee83cd310", "15d484375f8d13e6eb1aabb0c3f46965"),
    ),
)
_CIFAR10_BINARY = {
    "data_batch_1.bin": "5dd7e06a14cb22eb9f671a540d1b7c25",
    "data_batch_2.bin": "5ea93a67294ea407fff1d09f752e9692",
    "data_batch_3.bin": "942cd6a4bcdd0dd3c604fbe906cb4421",
    "data_batch_4.bin": "ae636b3ba5c66a11e91e8cb52e771fcb",
    "data_batch_5.bin": "53f37980c15c3d472c316c40844f3f0d",
    "test_batch.bin": "803d5f7f4d78ea53de84dbe85f74fb6d",
}
_CIFAR10_PYTHON = {
    "data_batch_1": "c99cafc152244af753f735de768cd75f",
    "data_batch_2": "d4bba439e000b95fd0a9bffe97cbabec",
    "data_batch_3": "54ebc095f3ab1f0389bbae665268c751",
    "data_batch_4": "634d18415352ddfa80567beed471001a",
    "data_batch_5": "482c414d41f54cd18b22e5b47cb7c3cb",
    "test_batch": "40351d587109b95175f43aff81a1287e",
    "batches.meta": "5ff9c542aee3614f3951f8cda6e48888",
}
_TORONTO = "https://www.cs.toronto.edu/~kriz"
_RESEARCH = "no licence stated; used for research"
_WATERBIRDS = "waterbird_complete95_forest2water2"


def _images(**numbers: int) -> tuple[Images, ...]:
    return tuple(Images(folder, number) for folder, number in numbers.items())


def _domains(name: str, title: str, archive: str, drive: str, layout: Layout, *, top: str) -> Source:
    """A set of DomainBed's: handed out on a drive page, without a checksum, as `<domain>/<class>/<image>`."""
    return Source(
        name,
        title,
        "https://github.com/facebookresearch/DomainBed",
        _RESEARCH,
        (Archive(archive, layout.folder, top=top),),
        (layout,),
        by_hand=f"Download {archive}: https://drive.google.com/uc?id={drive}",
    )


_ALL = (
    Source("mnist", "MNIST", "http://yann.lecun.com/exdb/mnist/", "CC BY-SA 3.0", *_MNIST),
    Source("fashion-mnist", "Fashion-MNIST", "https://github.com/zalandoresearch/fashion-mnist", "MIT", *_FASHION),
    Source(
        "cifar10",
        "CIFAR-10",
        f"{_TORONTO}/cifar.html",
        _RESEARCH,
        (
            Archive(
                "cifar-10-binary.tar.gz",
                "cifar-10-batches-bin",
                (f"{_TORONTO}/cifar-10-binary.tar.gz",),
                170_052_171,
                md5="c32a1d4ab5d03f1284b67883e8d87530",
                sha256="c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd",
                top="cifar-10-batches-bin",
            ),
        ),
        (
            Layout("cifar-10-batches-bin", tuple(File(n, 30_730_000, md5) for n, md5 in _CIFAR10_BINARY.items())),
            Layout("cifar-10-batches-py", tuple(File(n, None, md5) for n, md5 in _CIFAR10_PYTHON.items())),
        ),
    ),
    Source(
        "cifar100",
        "CIFAR-100",
        f"{_TORONTO}/cifar.html",
        _RESEARCH,
        (
            Archive(
                "cifar-100-binary.tar.gz",
                "cifar-100-binary",
                (f"{_TORONTO}/cifar-100-binary.tar.gz",),
                168_513_733,
                sha256="58a81ae192c23a4be8b1804d68e518ed807d710a4eb253b1f2a199162a40d8ec",
                top="cifar-100-binary",
            ),
        ),
        (
            # The md5s of the two members are not published: their size follows from the record of 2 + 3072 bytes.
            Layout("cifar-100-binary", (File("train.bin", 153_700_000), File("test.bin", 30_740_000))),
            Layout(
                "cifar-100-python",
                (
                    File("train", None, "16019d7e3df5f24257cddd939b257f8d"),
                    File("test", None, "f0ef6b0ae62326f3e7ffdfab6717acfc"),
                    File("meta", None, "7973b15100ade9c7d40fb424638fde48"),
                ),
            ),
        ),
    ),
    Source(
        "stl10",
        "STL-10",
        "https://cs.stanford.edu/~acoates/stl10/",
        "images from ImageNet, whose terms of access apply",
        (
            Archive(
                "stl10_binary.tar.gz",
                "stl10_binary",
                tuple(f"{http}://ai.stanford.edu/~acoates/stl10/stl10_binary.tar.gz" for http in ("https", "http")),
                2_640_397_119,
                sha256="f31fd99273a1acb8609c8db427cebb1de3f71de77758cdc0e22956e1289b9866",
                top="stl10_binary",
            ),
        ),
        (
            Layout(
                "stl10_binary",
                (
                    File("train_X.bin", 5_000 * 27_648, "918c2871b30a85fa023e0c44e0bee87f"),
                    File("train_y.bin", 5_000, "5a34089d4802c674881badbb80307741"),
                    File("test_X.bin", 8_000 * 27_648, "7f263ba9f9e0b06b93213547f721ac82"),
                    File("test_y.bin", 8_000, "36f9794fa4beb8a2c72628de14fa638e"),
                ),
            ),
        ),
    ),
    Source(
        "cinic10",
        "CINIC-10",
        "https://datashare.ed.ac.uk/handle/10283/3192",
        "CC BY 4.0",
        (
            Archive(
                "CINIC-10.tar.gz",
                "CINIC-10",
                (
                    "https://datashare.ed.ac.uk/bitstream/handle/10283/3192/CINIC-10.tar.gz",
                    "https://datashare.ed.ac.uk/server/api/core/bitstreams/e8e186cc-2688-48f1-aa5a-3fda1a43f8b6/content",
                ),
                md5="6ee4d0c996905fe93221de577967a372",
            ),
        ),
        (Layout("CINIC-10", images=_images(train=90_000, valid=90_000, test=90_000)),),
    ),
    Source(
        "tiny-imagenet",
        "Tiny-ImageNet",
        "http://cs231n.stanford.edu/",
        "images from ImageNet, whose terms of access apply",
        (
            Archive(
                "tiny-imagenet-200.zip",
                "tiny-imagenet-200",
                tuple(f"{http}://cs231n.stanford.edu/tiny-imagenet-200.zip" for http in ("https", "http")),
                248_100_043,
                md5="90528d7ca1a48142e341f4ef8d21d0de",
                top="tiny-imagenet-200",
            ),
        ),
        (
            Layout(
                "tiny-imagenet-200",
                (File("wnids.txt"), File("words.txt"), File("val/val_annotations.txt")),
                _images(train=100_000, val=10_000),
            ),
        ),
    ),
    Source(
        "waterbirds",
        "Waterbirds",
        "https://github.com/kohpangwei/group_DRO",
        "research; birds from CUB-200-2011, backgrounds from Places, whose terms apply",
        (Archive(f"{_WATERBIRDS}.tar.gz", _WATERBIRDS, top=_WATERBIRDS),),
        (Layout(_WATERBIRDS, (File("metadata.csv"),), (Images(".", 11_788),)),),
        by_hand=f"Download {_WATERBIRDS}.tar.gz (no checksum is published): "
        f"https://nlp.stanford.edu/data/dro/{_WATERBIRDS}.tar.gz",
    ),
    Source(
        "celeba",
        "CelebA",
        "https://mmlab.ie.cuhk.edu.hk/projects/CelebA.html",
        "non-commercial research only",
        (
            Archive(
                "img_align_celeba.zip",
                "celeba/img_align_celeba",
                md5="00d2c5bc6d35e252742224ab0c1e8fcb",
                top="img_align_celeba",
            ),
            Archive("list_attr_celeba.txt", "celeba", md5="75e246fa4810816ffd6ee81facbd244c", packed=False),
            Archive("list_eval_partition.txt", "celeba", md5="d32c9cbf5e040fd4025c592c306e6668", packed=False),
        ),
        (
            Layout(
                "celeba",
                (
                    File("list_attr_celeba.txt", None, "75e246fa4810816ffd6ee81facbd244c"),
                    File("list_eval_partition.txt", None, "d32c9cbf5e040fd4025c592c306e6668"),
                ),
                _images(img_align_celeba=202_599),
            ),
            Layout(  # the re-publication as comma-separated tables
                "celeba",
                (File("list_attr_celeba.csv"), File("list_eval_partition.csv")),
                _images(img_align_celeba=202_599),
            ),
        ),
        by_hand="Open the page, agree to the terms, and download from its drive folder: Img/img_align_celeba.zip, "
        "Anno/list_attr_celeba.txt, Eval/list_eval_partition.txt",
    ),
    _domains(
        "pacs",
        "PACS",
        "PACS.zip",
        "1JFr8f805nMUelQWWmfnJR3y4_SYoN5Pd",
        Layout("PACS", images=_images(art_painting=2_048, cartoon=2_344, photo=1_670, sketch=3_929)),
        top="kfold",
    ),
    _domains(
        "vlcs",
        "VLCS",
        "VLCS.tar.gz",
        "1skwblH1_okBwxWxmRsp9_qi15hyPpxg8",
        Layout("VLCS", images=_images(Caltech101=1_415, LabelMe=2_656, SUN09=3_282, VOC2007=3_376)),
        top="VLCS",
    ),
    _domains(
        "office-home",
        "Office-Home",
        "office_home.zip",
        "1uY0pj7oFsjMxRwaD3Sxy0jgel0fsYXLC",
        Layout("office_home", images=_images(Art=2_427, Clipart=4_365, Product=4_439, **{"Real World": 4_357})),
        top="OfficeHomeDataset_10072016",
    ),
)

SOURCES: Mapping[str, Source] = MappingProxyType({each.name: each for each in _ALL})
