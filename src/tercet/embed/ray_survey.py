"""Checking all files of a corpus on the cluster, before anything is embedded."""

from __future__ import annotations

from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from tercet.data.columns import shorten
from tercet.data.stream import ID, TextFile
from tercet.embed.ray_cluster import import_ray
from tercet.embed.ray_corpus import FileCorpus, Share
from tercet.embed.shared_files import fetched, find_files
from tercet.errors import TercetError

Hashes = NDArray[np.uint64]


def survey(source: str, *, column: str | None, id_column: str | None) -> FileCorpus:
    """Open and check all files of a corpus, each on some machine of the cluster."""
    ray = import_ray()
    sources = find_files(source)
    remote_open = ray.remote(open_file)
    files = [remote_open.remote(file, column=column, id_column=id_column) for file in sources]
    return FileCorpus.of(sources, ray.get(files))


def open_file(source: str, *, column: str | None, id_column: str | None) -> TextFile:
    """Open a file at a path or URI; errors name that location, not the local copy."""
    with fetched(source) as path:
        try:
            return TextFile.open(path, column, id_column)
        except TercetError as error:
            raise TercetError(str(error).replace(str(path), source)) from error


def check_ids(corpus: FileCorpus) -> None:
    """Raise if two files hold the same id; each file alone has been checked already.

    8 bytes per row are collected here; ids with equal hashes are then compared themselves.
    """
    if len(corpus.files) == 1:
        return
    ray = import_ray()
    shares = corpus.shares(set(range(len(corpus.parts()))))
    hashes, stored = ray.remote(_hashes), ray.put(corpus)
    sorted_hashes = np.concatenate(ray.get([hashes.remote(stored, share) for share in shares]))
    sorted_hashes.sort()
    repeated = set(sorted_hashes[1:][sorted_hashes[1:] == sorted_hashes[:-1]].tolist())
    if not repeated:
        return
    with_hash = ray.remote(_ids_with)
    seen: dict[str, str] = {}
    candidates = ray.get([with_hash.remote(stored, share, repeated) for share in shares])
    for share, ids in zip(shares, candidates, strict=True):
        name = corpus.names()[share.file]
        for id_ in ids:
            if id_ in seen:
                raise TercetError(
                    f"id {shorten(id_)!r} is in {seen[id_]} and in {name}; an id may occur only "
                    "once."
                )
            seen[id_] = name


def _hashes(corpus: FileCorpus, share: Share) -> Hashes:
    """A hash of each id, the same in every process, uint64 [rows]."""
    return np.fromiter(map(_hash, _ids(corpus, share)), np.uint64)


def _ids_with(corpus: FileCorpus, share: Share, hashes: set[int]) -> list[str]:
    return [id_ for id_ in _ids(corpus, share) if _hash(id_) in hashes]


def _ids(corpus: FileCorpus, share: Share) -> list[str]:
    return [id_ for _, batch in corpus.read(share) for id_ in batch.column(ID).to_pylist()]


def _hash(id_: str) -> int:
    return int.from_bytes(blake2b(id_.encode(), digest_size=8).digest(), "little")
