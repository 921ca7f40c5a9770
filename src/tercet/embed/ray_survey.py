"""Looking through all files of a corpus before anything is embedded, each on some machine."""

from __future__ import annotations

from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from tercet.data.columns import shorten
from tercet.data.stream import ID, TextFile
from tercet.embed.ray_cluster import import_ray
from tercet.embed.ray_corpus import Corpus, Share
from tercet.embed.shared_files import fetched, find_files
from tercet.errors import TercetError

Hashes = NDArray[np.uint64]


def survey(source: str, *, column: str | None, id_column: str | None) -> Corpus:
    """Look through all files of a corpus, each on some machine of the cluster."""
    ray = import_ray()
    sources = find_files(source)
    look = ray.remote(look_through)
    waiting = [look.remote(one, column=column, id_column=id_column) for one in sources]
    return Corpus.of(sources, ray.get(waiting))


def look_through(source: str, *, column: str | None, id_column: str | None) -> TextFile:
    """Open a file of a corpus wherever it lies; it is found again by its source, not its path."""
    with fetched(source) as path:
        try:
            return TextFile.open(path, column, id_column)
        except TercetError as error:
            raise TercetError(str(error).replace(str(path), source)) from error


def check_ids(corpus: Corpus) -> None:
    """Raise where two files hold the same id; within one file that is known already.

    8 bytes a row meet here; ids whose hashes are alike are then compared themselves.
    """
    if len(corpus.files) == 1:
        return
    ray = import_ray()
    shares = corpus.shares(set(range(len(corpus.parts()))))
    hashes, stored = ray.remote(_hashes), ray.put(corpus)
    found = np.concatenate(ray.get([hashes.remote(stored, share) for share in shares]))
    found.sort()
    alike = set(found[1:][found[1:] == found[:-1]].tolist())
    if not alike:
        return
    with_hash = ray.remote(_ids_with)
    seen: dict[str, str] = {}
    waiting = [with_hash.remote(stored, share, alike) for share in shares]
    for share, ids in zip(shares, ray.get(waiting), strict=True):
        name = corpus.names()[share.file]
        for one in ids:
            if one in seen:
                raise TercetError(
                    f"id {shorten(one)!r} stands in {seen[one]} and in {name}; an id may stand "
                    "only once."
                )
            seen[one] = name


def _hashes(corpus: Corpus, share: Share) -> Hashes:
    """A hash of each id, the same in every process, uint64 [rows]."""
    return np.fromiter(map(_hash, _ids(corpus, share)), np.uint64)


def _ids_with(corpus: Corpus, share: Share, hashes: set[int]) -> list[str]:
    return [one for one in _ids(corpus, share) if _hash(one) in hashes]


def _ids(corpus: Corpus, share: Share) -> list[str]:
    return [one for _, batch in corpus.read(share) for one in batch.column(ID).to_pylist()]


def _hash(one: str) -> int:
    return int.from_bytes(blake2b(one.encode(), digest_size=8).digest(), "little")
