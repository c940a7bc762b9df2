"""Which commands read which files: everything that evenly opens and did not write in the same breath."""

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from soak import containers, mutations, publisher, small, structures
from soak.mutations import Mutation

_BY_SUFFIX = {
    ".json": structures.JSON,
    ".jsonl": structures.JSON_LINES,
    ".yaml": structures.YAML,
    ".csv": structures.CELLS,
    ".tsv": structures.CELLS,
    ".npz": containers.ARCHIVE,
    ".npy": containers.ARRAY,
    ".zip": containers.ARCHIVE,
    ".tar": containers.TAR,
    ".gz": containers.TAR,
    ".safetensors": containers.TENSORS,
    ".png": containers.PICTURE,
    "": structures.JSON,
}
_BINARY = {".parquet", ".bin", ".jpg", ".gif", ".bmp"}


@dataclass(frozen=True)
class Reader:
    """Files (by patterns) or words that are damaged, and commands that read them.

    In commands `{file}` is the damaged file, `{run}` the folder of the run it lies in, and `{text}` the damaged text.
    """

    name: str
    commands: tuple[tuple[str, ...], ...]
    files: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()
    changes: tuple[Mutation, ...] | None = None
    weight: int = 1
    good: tuple[int, ...] = (0, 5)  # how the commands end with undamaged files

    def candidates(self, template: Path) -> list[str]:
        """The files that may be damaged."""
        found = [path for pattern in self.files for path in sorted(template.glob(pattern)) if path.is_file()]
        return [str(path.relative_to(template)) for path in found if path.name != "lock"]

    def mutations(self, file: str) -> tuple[Mutation, ...]:
        """How a file of that name may be damaged."""
        if self.changes is not None:
            return self.changes
        path = Path(file)
        if path.suffix in _BINARY or "ubyte" in path.name or "_batch" in path.name:
            return containers.COUNTS if "ubyte" in path.name else mutations.BYTES
        return _BY_SUFFIX.get(path.suffix, mutations.TEXT)

    def workspace(self, template: Path, folder: Path) -> None:
        """What the commands need, copied."""
        folder.mkdir(parents=True)
        for need in self.needs:
            target = folder / need
            target.parent.mkdir(parents=True, exist_ok=True)
            if (template / need).is_dir():
                shutil.copytree(template / need, target)
            else:
                shutil.copy2(template / need, target)

    def words(self, command: Sequence[str], *, file: str, text: str) -> list[str]:
        """A command with its blanks filled in."""
        folder = Path(file).parent
        run = folder.parent if folder.name == "checkpoints" else folder
        words = [word.replace("{file}", file).replace("{run}", str(run)) for word in command]
        if "{option}" in words:  # an option and its value
            option, _, value = text.partition(" ")
            at = words.index("{option}")
            return [*words[:at], f"{option}={value}", *words[at + 1 :]]
        return [word.replace("{text}", text) for word in words]


def readers() -> list[Reader]:
    """All of them, the most intricate ones with the greatest weight."""
    tiny = tuple(small.TINY)
    brief = (*tiny, "--epochs", "1", "--runs", "new")
    stopped = ("train", "d.npz", *tiny, "--epochs", "3", "--set", "keep_epochs=[1]", "--set", "record_examples=true")
    useful = ("useful", "d.npz", *tiny, "--epochs", "2", "--at-epoch", "1", "--seeds", "0", "--runs", "useful")
    smoke = (
        "reproduce",
        small.EXPERIMENT,
        "--scale",
        "smoke",
        "--on",
        "local:1",
        "--runs",
        "work",
        "--ledger",
        "claims",
    )
    page = ("report", "{run}", "--out", "page.html")
    dry = ("train", "d.npz", *tiny, "--dry-run")
    return [
        Reader(
            "run folders",
            (
                ("runs",),
                ("runs", "--json"),
                ("runs", "show", "{run}"),
                (*page, "--runs", "runs"),
                ("report", "runs", "--out", "page.html"),
                ("measure", "{run}", "rank"),
                (*stopped, "--seed", "0"),
                (*stopped, "--seed", "1"),
            ),
            ("runs/*/*", "runs/*/checkpoints/*"),
            ("runs", "d.npz"),
            weight=6,
            good=(0, 3, 2),  # a run that is not done cannot be measured
        ),
        Reader(
            "useful's runs",
            (
                useful,
                (*page, "--runs", "useful"),
                ("export", "{run}", "--as", "csv", "--runs", "useful"),
                ("runs", "--runs", "useful"),
            ),
            ("useful/*/*",),
            ("useful", "d.npz"),
            weight=4,
            good=(0, 2, 3),  # of the runs only those that were resampled can be exported
        ),
        Reader(
            "networks",
            (
                ("predict", "{run}", "photos"),
                ("export", "{run}", "--as", "hub"),
                ("measure", "{run}", "rank"),
                ("train", "list.csv", "--from", "{run}", *brief),
            ),
            ("pictures/*/*",),
            ("pictures", "photos", "list.csv"),
            weight=3,
        ),
        Reader(
            "exported networks",
            (("predict", "exported", "photos"), ("train", "list.csv", "--from", "exported", *brief)),
            ("exported/config.json", "exported/model.safetensors"),
            ("exported", "photos", "list.csv"),
            weight=2,
            good=(0, 2),
        ),
        Reader(
            "parts of experiments",
            (smoke, (*smoke, "--fresh")),
            ("work/parts/*/*",),
            ("work", "claims"),
            weight=2,
        ),
        Reader(
            "ledger rows",
            (
                ("report", "--claims", "--ledger", "claims", "--out", "site"),
                ("reproduce", "--list", "--ledger", "claims"),
                (*smoke, "--check"),
            ),
            ("claims/*.json",),
            ("work", "claims"),
            weight=2,
        ),
        Reader(
            "separations",
            (("export", "{file}", "--as", "indices"), ("export", "{file}", "--as", "csv", "--data", "d.npz")),
            ("separation.*",),
            ("separation.csv", "separation.json", "separation.npz", "d.npz"),
            weight=2,
            good=(0, 2, 3),  # they are of other examples than those of d.npz
        ),
        Reader("arrays", (("train", "d.npz", *brief), ("data", "verify", "d.npz")), ("d.npz",), ("d.npz",), weight=2),
        Reader("logits", (("separate", "--from-logits", "logits.npz"),), ("logits.npz",), ("logits.npz",), weight=2),
        Reader(
            "gram matrices",
            (("stability", "threshold", "--gram", "gram.npy", "--batch", "4"),),
            ("gram.npy",),
            ("gram.npy",),
        ),
        Reader(
            "manifests",
            (("data", "verify", "{file}"), ("train", "{file}", *tiny, "--dry-run")),
            ("list.*",),
            ("list.csv", "list.tsv", "list.parquet", "photos"),
            weight=3,
        ),
        Reader(
            "pictures",
            (
                ("data", "verify", "photos/"),
                ("data", "verify", "photos/", "--skip-broken"),
                ("train", "list.csv", *brief),
                ("train", "photos/", *brief),
            ),
            ("photos/*/*",),
            ("photos", "list.csv"),
            weight=2,
        ),
        Reader(
            "idx",
            (
                ("data", "show", "fashion-mnist", "--per-class", "1", "--out", "s.png"),
                ("train", "fashion-mnist", *tiny, "--dry-run"),
            ),
            ("root/FashionMNIST/raw/*",),
            ("root/FashionMNIST",),
        ),
        Reader(
            "CIFAR, binary",
            (("train", "cifar10", *tiny, "--dry-run"),),
            ("root/cifar-10-batches-bin/*",),
            ("root/cifar-10-batches-bin",),
        ),
        Reader(
            "CIFAR, pickled",
            (("train", "cifar10", "--data-root", "python_root", *tiny, "--dry-run"),),
            ("python_root/cifar-10-batches-py/*",),
            ("python_root",),
        ),
        Reader("tar archives", (("data", "get", publisher.BY_HAND["tar"]),), ("root/hand.tar",), ("root/hand.tar",)),
        Reader("zip archives", (("data", "get", publisher.BY_HAND["zip"]),), ("root/hand.zip",), ("root/hand.zip",)),
        Reader(
            "packed archives", (("data", "get", publisher.BY_HAND["gz"]),), ("root/hand.tar.gz",), ("root/hand.tar.gz",)
        ),
        Reader(
            "recipes",
            (("train", "--config", "recipe.yaml", "--dry-run"), ("useful", "--config", "recipe.yaml", "--dry-run")),
            ("recipe.yaml",),
            ("recipe.yaml", "d.npz"),
            weight=3,
        ),
        Reader(
            "--set",
            ((*dry, "--set", "{text}"), ("useful", *dry[1:], "--set", "{text}")),
            needs=("d.npz",),
            texts=_SETTINGS,
            weight=2,
        ),
        Reader(
            "--set of data",
            (("data", "verify", "list.csv", "--set", "{text}"),),
            needs=("list.csv", "photos"),
            texts=("size=8", "skip_broken=true", "label_column=label", "path_column=path", "repeat_column=repeat"),
        ),
        Reader("options", ((*dry, "{option}"),), needs=("d.npz",), texts=_OPTIONS),
    ]


_SETTINGS = (
    "optimizer.lr=0.1", "ascent.rho=0.05", "ascent.rule=sam", "schedule.kind=cosine", "augment=[mirror]", "seed=3",
    "model.options.width=8", "model.options={width: 8, depth: 2}", "model.name=mlp", "data.validation=0.2",
    "loss=cross-entropy", "keep_epochs=[1]", "label_smoothing=0.1", "clip_norm=1", "precision=fp32", "batch_size=8",
    "evaluate_every=1", "epochs=2", "until.epoch=1", "resampling.factor=2", "drop_last=true", "compile=false",
    "channels_last=false", "record_examples=true",
)  # fmt: skip
_OPTIONS = (
    "--lr 0.1", "--rho 0.05", "--epochs 2", "--batch-size 8", "--seed 0", "--model mlp", "--optimizer sam",
    "--device cpu", "--workers 0", "--pace 1", "--allow data", "--config recipe.yaml", "--data-root root",
    "--runs new", "--set seed=1",
)  # fmt: skip
