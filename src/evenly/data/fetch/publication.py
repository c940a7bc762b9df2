"""The description of a published data set: the archives to fetch, and the files that must then be on disk."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Archive:
    """A file of the publisher: `urls` in order of preference, or none if it must be fetched by hand.

    It goes to the folder `into` under the data root: unpacked, so that the folder `top` inside it becomes
    `into`, or as it is where `packed` is false.
    """

    name: str
    into: str
    urls: tuple[str, ...] = ()
    size: int | None = None
    md5: str | None = None
    sha256: str | None = None
    top: str = ""
    packed: bool = True


@dataclass(frozen=True)
class File:
    """A file that must be there, with its size and md5 where they are known."""

    path: str
    size: int | None = None
    md5: str | None = None


@dataclass(frozen=True)
class Images:
    """A folder that must hold this many images, counted through all its subfolders."""

    path: str
    number: int


@dataclass(frozen=True)
class Layout:
    """One possible layout of a data set on disk: the content of `folder` under the data root."""

    folder: str
    files: tuple[File, ...] = ()
    images: tuple[Images, ...] = ()


@dataclass(frozen=True)
class Source:
    """A published data set: its page, terms, archives, and the layouts it may have, the first preferred.

    `by_hand` says how to fetch what cannot be fetched with a checksum; such archives have no `urls`.
    """

    name: str
    title: str
    page: str
    terms: str
    archives: tuple[Archive, ...]
    layouts: tuple[Layout, ...]
    by_hand: str = ""

    @property
    def folder(self) -> str:
        """The folder under the data root that `get` fills."""
        return self.layouts[0].folder

    def instructions(self, root: Path) -> str:
        """Instructions to fetch this data set by hand, step by step, and the layout it must have.

        >>> from evenly.data.fetch.sources import source
        >>> print(source("vlcs").instructions(Path("data")))
        VLCS is fetched by hand from its publisher: https://github.com/facebookresearch/DomainBed
          1. Download VLCS.tar.gz: https://drive.google.com/uc?id=1skwblH1_okBwxWxmRsp9_qi15hyPpxg8
          2. Put VLCS.tar.gz into data, as it is.
          3. Run `evenly data get vlcs` again: it unpacks and checks.
        Or lay it out yourself: data/VLCS/{Caltech101,LabelMe,SUN09,VOC2007}.
        """
        places = [f"Put {a.name} into {root if a.packed else root / a.into}, as it is." for a in self.archives]
        steps = [self.by_hand, *places, f"Run `evenly data get {self.name}` again: it unpacks and checks."]
        layout = self.layouts[0]
        parts = [file.path for file in layout.files] + [folder.path for folder in layout.images if folder.path != "."]
        inside = f"{{{','.join(parts)}}}" if len(parts) > 1 else parts[0]
        return "\n".join(
            [
                f"{self.title} is fetched by hand from its publisher: {self.page}",
                *(f"  {number}. {step}" for number, step in enumerate(steps, 1)),
                f"Or lay it out yourself: {root / layout.folder}/{inside}.",
            ]
        )
