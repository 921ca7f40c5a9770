"""The tokenizer against `tokenizers` and `transformers`, and on texts that nobody expects."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tokenizers import Encoding, models, processors
from tokenizers import Tokenizer as Backend
from transformers import AutoTokenizer

from tercet.errors import TercetError
from tercet.text.tokenizer import STEP_CHARACTERS, Tokenizer
from tercet.text.tokens import Pieces, Tokens

ODD = [
    "",
    " ",
    "\t\n",
    "😀👩‍🚀 emoji",
    "\x00\x07 control \x1b[0m",
    "naïve Ärger",
    "漢字かな",
    "a" * 300,
]
ODD += [
    "[SEP] and [MASK] in text </s>",
    "don't -- stop!",
    "\u200b\ufeff\ufffd",
    "A film , it 's good .",
]
WORDS = st.sampled_from(
    ["the", "film", "zebra", "Guitar", "?", "😀", "ÄÖ", "漢", "##ing", "[MASK]"]
)
TEXTS = st.one_of(st.text(max_size=40), st.lists(WORDS, max_size=30).map(" ".join))


@pytest.fixture(scope="module", params=["tiny_encoder", "tiny_mpnet"])
def folder(request: pytest.FixtureRequest) -> Path:
    path: Path = request.getfixturevalue(request.param)
    return path


@pytest.fixture(scope="module")
def tokenizer(folder: Path) -> Tokenizer:
    return Tokenizer.load(folder)


def rows(tokens: Tokens) -> list[tuple[list[int], list[int]]]:
    cuts = tokens.offsets[1:-1]
    return [
        (ids.tolist(), types.tolist())
        for ids, types in zip(np.split(tokens.ids, cuts), np.split(tokens.types, cuts), strict=True)
    ]


def reference(folder: Path, inputs: list, max_tokens: int) -> list[tuple[list[int], list[int]]]:
    backend = Backend.from_file(str(folder / "tokenizer.json"))
    backend.no_padding()
    backend.enable_truncation(max_tokens)
    return [(row.ids, row.type_ids) for row in backend.encode_batch(inputs)]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(texts=st.lists(TEXTS, min_size=1, max_size=5), max_tokens=st.integers(5, 40))
def test_singles_equal_tokenizers(folder, tokenizer, texts, max_tokens):
    tokens = tokenizer.encode(texts, max_tokens=max_tokens)
    assert rows(tokens) == reference(folder, texts, max_tokens)
    assert tokens.longest == max(tokens.lengths)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    pairs=st.lists(st.tuples(TEXTS, TEXTS), min_size=1, max_size=5), max_tokens=st.integers(5, 40)
)
def test_pairs_equal_tokenizers(folder, tokenizer, pairs, max_tokens, encode_pairs):
    tokens = encode_pairs(tokenizer, pairs, max_tokens=max_tokens)
    whole = reference(folder, pairs, 10_000)
    assert rows(tokens) == reference(folder, pairs, max_tokens)
    assert tokens.truncated == sum(len(ids) > max_tokens for ids, _ in whole)


@pytest.mark.parametrize("real", ["minilm", "mpnet"])
def test_real_tokenizers_equal_transformers(real, request, encode_pairs):
    folder = request.getfixturevalue(real)
    ours, theirs = Tokenizer.load(folder), AutoTokenizer.from_pretrained(folder)
    long = [text * 20 for text in ODD]
    pairs = list(zip(ODD + long, reversed(long + ODD), strict=True))
    for max_tokens in (8, 61, 128):
        options = {"truncation": "longest_first", "max_length": max_tokens, "padding": False}
        options["return_token_type_ids"] = True
        singles = theirs(ODD + long, **options)
        joined = theirs([a for a, _ in pairs], [b for _, b in pairs], **options)
        ours_singles = rows(ours.encode(ODD + long, max_tokens=max_tokens))
        ours_joined = rows(encode_pairs(ours, pairs, max_tokens=max_tokens))
        assert [ids for ids, _ in ours_singles] == singles["input_ids"]
        assert [ids for ids, _ in ours_joined] == joined["input_ids"]
        assert [types for _, types in ours_joined] == joined["token_type_ids"]
    assert ours.mask_id == theirs.mask_token_id
    assert set(theirs.all_special_ids) <= ours.special_ids
    assert ours.vocabulary == len(theirs)


@pytest.mark.parametrize("real", ["minilm", "mpnet"])
def test_vocabulary_file_alone_gives_the_same_ids(real, request, tmp_path, encode_pairs):
    folder = request.getfixturevalue(real)
    for name in ("vocab.txt", "tokenizer_config.json", "special_tokens_map.json"):
        shutil.copy(folder / name, tmp_path)
    alone, whole = Tokenizer.load(tmp_path), Tokenizer.load(folder)
    pairs = list(zip(ODD, reversed(ODD), strict=True))
    assert rows(encode_pairs(alone, pairs, max_tokens=50)) == rows(
        encode_pairs(whole, pairs, max_tokens=50)
    )


def test_case_is_kept_only_when_the_settings_say_so(tmp_path):
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "film", "Film"]
    (tmp_path / "vocab.txt").write_text("\n".join(vocabulary), "utf-8")
    assert Tokenizer.load(tmp_path).pieces(["Film"], limit=9).ids.tolist() == [5]
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"do_lower_case": False}), "utf-8")
    cased = Tokenizer.load(tmp_path)
    assert cased.pieces(["Film"], limit=9).ids.tolist() == [6]
    cased.save(tmp_path / "saved")
    assert Tokenizer.load(tmp_path / "saved").pieces(["Film"], limit=9).ids.tolist() == [6]


def test_only_newlines_part_the_vocabulary(tmp_path):
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "\u2028", "film"]
    for end in ("\n", "\r\n"):
        (tmp_path / "vocab.txt").write_bytes(end.join([*vocabulary, ""]).encode())
        tokenizer = Tokenizer.load(tmp_path)
        assert tokenizer.pieces(["film"], limit=9).ids.tolist() == [6]
        assert tokenizer.vocabulary == 7


def test_cutting_and_padding_inside_the_definition_are_switched_off(folder, tokenizer, tmp_path):
    backend = Backend.from_file(str(folder / "tokenizer.json"))
    backend.enable_truncation(6)
    backend.enable_padding(length=6)
    backend.save(str(tmp_path / "tokenizer.json"))
    shaped = Tokenizer.load(tmp_path)
    texts = ["a film", "the film is a triumph, and the script is flawless"]
    assert rows(shaped.encode(texts, max_tokens=50)) == rows(tokenizer.encode(texts, max_tokens=50))
    assert shaped.fingerprint == tokenizer.fingerprint


def test_pieces_are_cut_but_their_length_is_remembered(tokenizer, encode_pairs):
    pieces = tokenizer.pieces(["the film is a film", "", "the film"], limit=3)
    assert np.diff(pieces.offsets).tolist() == [3, 0, 2]
    assert pieces.lengths.tolist() == [5, 0, 2]
    assert len(tokenizer.pieces([], limit=3)) == 0
    assert len(tokenizer.encode([], max_tokens=8)) == 0
    assert len(encode_pairs(tokenizer, [], max_tokens=8)) == 0


def test_more_texts_than_a_chunk_keep_their_order(tokenizer, monkeypatch):
    texts = [f"film {number}" for number in range(50)]
    whole = tokenizer.pieces(texts, limit=9)
    monkeypatch.setattr("tercet.text.tokenizer.CHUNK_TEXTS", 7)
    monkeypatch.setattr("tercet.text.tokenizer.CHUNK_CHARACTERS", 30)
    parts = tokenizer.pieces(texts, limit=9)
    assert parts.ids.tolist() == whole.ids.tolist()
    assert parts.offsets.tolist() == whole.offsets.tolist()


def test_half_a_surrogate_pair_is_replaced_and_a_whole_one_joined(tokenizer):
    lone = tokenizer.encode(["film \ud800 film", "film"], max_tokens=20)
    assert rows(lone) == rows(tokenizer.encode(["film \ufffd film", "film"], max_tokens=20))
    joined = tokenizer.encode(["\ud83d\ude00"], max_tokens=20)
    assert rows(joined) == rows(tokenizer.encode(["😀"], max_tokens=20))


@pytest.mark.parametrize("text", ["x" * 1_000_000, "a film, " * 125_000, "😀" * 250_000])
def test_a_megabyte_on_one_line_is_quick(tokenizer, text):
    begin = time.perf_counter()
    tokens = tokenizer.encode([text], max_tokens=64)
    assert time.perf_counter() - begin < 10
    assert tokens.longest <= 64


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda t: t.encode(["a", None], max_tokens=9), "Text 1 is None"),
        (lambda t: t.encode([float("nan")], max_tokens=9), "Text 0 is nan"),
        (lambda t: t.encode("a film", max_tokens=9), "not the string 'a film'"),
        (lambda t: t.pieces(["a", 3], limit=9), "3, not a string"),
        (lambda t: t.encode(["a"], max_tokens=2), "max_tokens = 2"),
        (lambda t: t.check_fits(10), "encoder has only 10"),
    ],
)
def test_wrong_input_is_named(tokenizer, call, words):
    with pytest.raises(TercetError, match=words):
        call(tokenizer)


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ({}, "neither tokenizer.json nor vocab.txt"),
        ({"tokenizer.json": b"{broken"}, "tokenizer.json is not a tokenizer definition"),
        (
            {"tokenizer.json": b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\n"},
            "tokenizer.json is a pointer of Git LFS",
        ),
        ({"vocab.txt": b"\xff\xfe"}, "not UTF-8"),
        ({"vocab.txt": b""}, r"must contain the tokens \[CLS\]"),
        ({"vocab.txt": b"a", "tokenizer_config.json": b"[1]"}, "not a JSON object"),
    ],
)
def test_a_folder_without_a_right_tokenizer_is_named(tmp_path, files, words):
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    with pytest.raises(TercetError, match=words):
        Tokenizer.load(tmp_path)


def test_a_tokenizer_that_fits_passes(tokenizer):
    tokenizer.check_fits(tokenizer.vocabulary)


def test_saved_tokenizer_loads_here_and_in_transformers(tokenizer, folder, tmp_path):
    tokenizer.save(tmp_path)
    again = Tokenizer.load(tmp_path)
    assert again.fingerprint == tokenizer.fingerprint
    theirs, before = (AutoTokenizer.from_pretrained(path) for path in (tmp_path, folder))
    assert theirs(ODD)["input_ids"] == before(ODD)["input_ids"]
    assert theirs.mask_token_id == tokenizer.mask_id
    assert type(theirs) is type(before)


def test_fingerprint_tells_tokenizers_apart(tiny_encoder, tiny_mpnet):
    assert Tokenizer.load(tiny_encoder).fingerprint != Tokenizer.load(tiny_mpnet).fingerprint


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.parametrize("parallelism", [None, "true", "false"])
def test_a_forked_child_neither_hangs_nor_warns(tiny_encoder, parallelism):
    script = (
        "import os, sys, pathlib; from tercet.text.tokenizer import Tokenizer\n"
        "t = Tokenizer.load(pathlib.Path(sys.argv[1])); t.encode(['a film'] * 99, max_tokens=9)\n"
        "before = os.environ.get('TOKENIZERS_PARALLELISM'); child = os.fork()\n"
        "t.encode(['a film'] * 99, max_tokens=9)\n"
        "if not child: os._exit(0)\n"
        "assert os.waitpid(child, 0)[1] == 0\n"
        "assert os.environ.get('TOKENIZERS_PARALLELISM') == before\n"
        "assert 'torch' not in sys.modules\n"
    )
    environment = {k: v for k, v in os.environ.items() if k != "TOKENIZERS_PARALLELISM"}
    if parallelism:
        environment["TOKENIZERS_PARALLELISM"] = parallelism
    # Python 3.12 warns of any fork beside threads; `tokenizers` would write to stderr itself.
    quiet = ["-W", "ignore::DeprecationWarning"]
    done = subprocess.run(
        [sys.executable, *quiet, "-c", script, tiny_encoder],
        env=environment,
        capture_output=True,
        text=True,
        timeout=20,
    )
    assert (done.returncode, done.stderr) == (0, "")


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    texts=st.lists(
        st.builds(
            lambda word, times, rest: word * times + rest,
            st.sampled_from(
                ["film ", "dull, ", " " * 50, "x" * 90 + " ", "y" * 300 + " ", "\u4e2d"]
            ),
            st.integers(0, 3000),
            st.text(max_size=20),
        ),
        min_size=1,
        max_size=4,
    )
)
def test_of_long_texts_the_first_pieces_are_read(tiny_encoder: Path, texts: list[str]) -> None:
    tokenizer = tokenizer_of(tiny_encoder)
    whole = tokenizer.pieces(texts, limit=24)
    first = Pieces.concat([*tokenizer.first_steps(texts, limit=24)])
    assert (first.ids == whole.ids).all()
    assert (first.offsets == whole.offsets).all()
    assert ((first.lengths > 24) == (whole.lengths > 24)).all()
    assert (first.lengths <= whole.lengths).all()


@cache
def tokenizer_of(folder: Path) -> Tokenizer:
    return Tokenizer.load(folder)


def test_a_text_of_megabytes_is_not_read_whole(
    tiny_encoder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokenizer = Tokenizer.load(tiny_encoder)
    read = counted_characters(tokenizer, monkeypatch)
    list(tokenizer.first_steps(["dull film " * 400_000, "dull"], limit=48))
    assert sum(read) < 10_000


@pytest.mark.parametrize("text", ["x" * 10**6, " " * 10**6, "e\u0301" * 10**6, "x " + "y" * 10**6])
def test_no_step_reads_more_than_its_characters(
    tiny_encoder: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    tokenizer = Tokenizer.load(tiny_encoder)
    read = counted_characters(tokenizer, monkeypatch)
    texts = ["dull", text, "film " * 20_000, "film"]
    first = Pieces.concat([*tokenizer.first_steps(texts, limit=48)])
    whole = tokenizer.pieces(texts, limit=48)
    assert (first.ids == whole.ids).all()
    assert (first.offsets == whole.offsets).all()
    assert max(read) <= STEP_CHARACTERS
    steps = [*tokenizer.whole_steps(texts, limit=48)]
    assert len(steps) > 20
    assert (Pieces.concat(steps).ids == tokenizer.whole_pieces(texts, limit=48).ids).all()


def counted_characters(tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The characters of each call of the backend, as they are made."""
    read: list[int] = []
    encode = tokenizer._encode

    def counted(texts: list[str]) -> list[Encoding]:
        read.append(sum(map(len, texts)))
        return encode(texts)

    monkeypatch.setattr(tokenizer, "_encode", counted)
    return read


def test_files_that_a_folder_only_links_to_are_not_saved_with_it(
    tiny_encoder: Path, tmp_path: Path
) -> None:
    folder = Path(shutil.copytree(tiny_encoder, tmp_path / "model"))
    (tmp_path / "secret").write_text("a secret", "utf-8")
    for name in ("merges.txt", "added_tokens.json"):
        (folder / name).symlink_to(tmp_path / "secret")
    (folder / "inside").write_text("#version: 0.2", "utf-8")
    (folder / "vocab.json").symlink_to("inside")
    Tokenizer.load(folder).save(tmp_path / "saved")
    assert not any(b"secret" in path.read_bytes() for path in (tmp_path / "saved").iterdir())
    assert (tmp_path / "saved" / "vocab.json").read_text("utf-8") == "#version: 0.2"


def test_folders_of_the_hubs_cache_are_links_and_saved_whole(
    tiny_encoder: Path, tmp_path: Path
) -> None:
    blobs, snapshot = tmp_path / "models--a--b" / "blobs", tmp_path / "models--a--b/snapshots/1"
    shutil.copytree(tiny_encoder, blobs)
    snapshot.mkdir(parents=True)
    for path in blobs.iterdir():
        (snapshot / path.name).symlink_to(Path("..", "..", "blobs", path.name))
    Tokenizer.load(snapshot).save(tmp_path / "saved")
    Tokenizer.load(tiny_encoder).save(tmp_path / "plain")
    names = sorted(path.name for path in (tmp_path / "plain").iterdir())
    assert "vocab.txt" in names
    assert sorted(path.name for path in (tmp_path / "saved").iterdir()) == names


@pytest.mark.parametrize("name", ["tokenizer.json", "vocab.txt"])
def test_a_tokenizer_of_absurd_size_is_not_read(
    tiny_encoder: Path, tmp_path: Path, name: str
) -> None:
    folder = Path(shutil.copytree(tiny_encoder, tmp_path / "model"))
    with (folder / name).open("ab") as file:
        file.truncate(10**12)  # takes no room on the disk
    with pytest.raises(TercetError, match=f"{name} has more than 67,108,864 bytes"):
        Tokenizer.load(folder)


def test_scores_of_unigram_pieces_are_those_of_the_file(tmp_path: Path) -> None:
    # Between 1 11 and 11 1 the last bit of the sum decides.
    scores = {"0": -2.4491218059779682, "1": -5.788019609832184, "11": -6.383851854113874}
    special = [("[UNK]", 0.0), ("[CLS]", 0.0), ("[SEP]", 0.0)]
    exact = Backend(models.Unigram([*special, *scores.items()], 0))
    exact.add_special_tokens([name for name, _ in special])
    exact.post_processor = processors.BertProcessing(("[SEP]", 2), ("[CLS]", 1))
    exact.save(str(tmp_path / "tokenizer.json"))
    ours = Tokenizer.load(tmp_path)
    assert exact.encode("00111").tokens == ["[CLS]", "0", "0", "1", "11", "[SEP]"]
    assert ours.encode(["00111"], max_tokens=9).ids.tolist() == exact.encode("00111").ids
    ours.save(tmp_path / "saved")
    again = Tokenizer.load(tmp_path / "saved")
    assert again.encode(["00111"], max_tokens=9).ids.tolist() == exact.encode("00111").ids
