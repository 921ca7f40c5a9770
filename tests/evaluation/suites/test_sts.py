from __future__ import annotations

import csv
import os
import shutil
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

import tercet
from tercet.data.senteval import STS_SETS, GradedPairs, StsSet, read_sts
from tercet.data.sketch import SketchBuilder
from tercet.evaluation.encoded_texts import EncodedTexts
from tercet.evaluation.suites.sts import Sts, held_pairs, without_leaks
from tercet.model import Model
from tercet.specs import DataSpec

STS_B = "senteval/STS/STSBenchmark/sts-test.csv"


def shorten(source: Path, target: Path, pairs: int) -> Path:
    """The STS files of a data folder with only as many graded pairs of each."""
    senteval = source / "senteval"
    kept = {}
    for graded in senteval.rglob("STS.gs.*.txt"):
        lines = graded.read_bytes().split(b"\n")
        rows = [row for row, grade in enumerate(lines) if grade][:pairs]
        kept[graded] = kept[graded.with_name(graded.name.replace("gs", "input", 1))] = rows
    kept[source / STS_B] = list(range(pairs))
    kept[senteval / "SICK/SICK_test_annotated.txt"] = list(range(pairs + 1))
    for path, rows in kept.items():
        if path.exists():
            lines = path.read_bytes().split(b"\n")
            short = target / path.relative_to(source)
            short.parent.mkdir(parents=True, exist_ok=True)
            short.write_bytes(b"".join(lines[row] + b"\n" for row in rows))
    return target


class Peer:
    """Spearman and Pearson of pairs, by sentence-transformers and scipy alone."""

    def __init__(self, folder: Path) -> None:
        from sentence_transformers import SentenceTransformer

        # A folder with weights in half precision would be computed in it.
        exact = {"dtype": "float32"}
        self.model = SentenceTransformer(str(folder), device="cpu", model_kwargs=exact)
        self.known: dict[str, np.ndarray] = {}

    def vectors(self, texts: Sequence[str]) -> np.ndarray:
        new = [text for text in dict.fromkeys(texts) if text not in self.known]
        self.known.update(zip(new, self.model.encode(new, convert_to_numpy=True), strict=True))
        return np.stack([self.known[text] for text in texts]).astype(np.float64)

    def figures(self, rows: list[tuple[str, str, float]]) -> tuple[float, float]:
        first, second, grades = zip(*rows, strict=True)
        u, v = self.vectors(first), self.vectors(second)
        lengths = np.linalg.norm(u, axis=1) * np.linalg.norm(v, axis=1)
        cosines = (u * v).sum(axis=1) / lengths
        spearman, pearson = stats.spearmanr(grades, cosines), stats.pearsonr(grades, cosines)
        return spearman.statistic, pearson.statistic


def peer_rows(folder: Path) -> dict[str, list[tuple[str, str, float]]]:
    rows: dict[str, list[tuple[str, str, float]]] = {}
    for year in ("12", "13", "14", "15", "16"):
        found = rows.setdefault(f"STS{year}", [])
        for inputs in sorted((folder / f"STS/STS{year}-en-test").glob("STS.input.*.txt")):
            graded = inputs.with_name(inputs.name.replace("input", "gs")).read_text("utf-8")
            texts = inputs.read_text("utf-8").split("\n")
            for line, grade in zip(texts, graded.split("\n"), strict=True):
                if grade:
                    found.append((*line.split("\t")[:2], float(grade)))
    with (folder / "STS/STSBenchmark/sts-test.csv").open(encoding="utf-8") as file:
        cells = [line.rstrip("\n").split("\t") for line in file]
    rows["STS-B"] = [(row[5], row[6], float(row[4])) for row in cells]
    with (folder / "SICK/SICK_test_annotated.txt").open(encoding="utf-8", newline="") as file:
        sick = list(csv.DictReader(file, delimiter="\t"))
    rows["SICK-R"] = [
        (row["sentence_A"], row["sentence_B"], float(row["relatedness_score"])) for row in sick
    ]
    return rows


@pytest.fixture(scope="module", params=["minilm", "mpnet"])
def both(request: pytest.FixtureRequest) -> tuple[EncodedTexts, Peer]:
    folder = request.getfixturevalue(request.param)
    return EncodedTexts(tercet.load(folder, device="cpu")), Peer(folder)


@pytest.fixture(scope="module")
def pairs_data(real_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All pairs take many minutes: TERCET_WHOLE=1 asks for them."""
    if os.environ.get("TERCET_WHOLE"):
        return real_data
    return shorten(real_data, tmp_path_factory.mktemp("sts"), 4)


@pytest.mark.parametrize("name", STS_SETS)
def test_figures_are_those_of_sentence_transformers_and_scipy(
    both: tuple[EncodedTexts, Peer], pairs_data: Path, name: StsSet, run
) -> None:
    encoded, peer = both
    result = run(Sts([name]), encoded, pairs_data)
    rows = peer_rows(pairs_data / "senteval")[name]
    found, expected = result.sets[name], peer.figures(rows)
    print(f"{name}: {len(rows)} pairs, {found.spearman.value:.6f} {expected[0]:.6f}", end="; ")
    print(f"{found.pearson.value:.6f} {expected[1]:.6f}")
    assert (found.spearman.value, found.pearson.value) == pytest.approx(expected, abs=1e-4)
    assert len(found.grades) == len(rows)
    assert result.missing == []


def test_the_average_is_that_of_all_sets(
    minilm: Path, real_data: Path, tmp_path: Path, run
) -> None:
    model = tercet.load(minilm, device="cpu")
    result = run(Sts(), model, shorten(real_data, tmp_path, 3))
    values = [each.spearman.value for each in result.sets.values()]
    assert len(values) == 7
    assert result.average == pytest.approx(np.mean(values))
    assert result.unleaked is None


def test_a_model_trained_on_sts_is_also_measured_without_leaked_pairs(
    headed, sample_data: Path, suite_data: Path, run
) -> None:
    shutil.copy(sample_data / "sts-train.csv", suite_data)
    lines = (suite_data / STS_B).read_text("utf-8").splitlines()
    fresh = [line.rpartition("\t")[0] + f"\tanother sentence {i}" for i, line in enumerate(lines)]
    (suite_data / STS_B).write_text("\n".join([*lines, *fresh]) + "\n", "utf-8")
    result = run(Sts(), headed, suite_data)
    assert len(result.sets["STS-B"].grades) == 2 * len(result.unleaked["STS-B"].grades) == 80
    document = result.to_json()
    assert document["without_leaked_pairs"]["STS-B"]["pairs"] == 40
    assert document["average"] is None
    # An encoder that is compared with it is measured on the same pairs.
    plain = Model(headed.network, headed.tokenizer, headed.info.model_copy(update={"tasks": {}}))
    assert run(Sts(), plain, suite_data).unleaked is None
    other = run(Sts(), plain, suite_data, compared=[plain, headed])
    assert other.unleaked["STS-B"].spearman == result.unleaked["STS-B"].spearman
    assert {each.task for each in result.missing} == {
        "STS12", "STS13", "STS14", "STS15", "STS16", "SICK-R",
    }  # fmt: skip


def test_leaks_are_found_in_either_order_whatever_case_and_blanks(tmp_path: Path) -> None:
    header = "\tid\tsentence1\tsentence2\tsimilarity\n"
    (tmp_path / "sts-train.csv").write_text(f"{header}0\ta\tA dog barks.\tA cat\t1.0\n", "utf-8")
    (tmp_path / "sts-dev.csv").write_text(f"{header}0\ta\tOne\tTwo\t1.0\n", "utf-8")
    pairs = GradedPairs(
        first=["a cat", "one", "a dog barks ."],
        second=["a dog barks .", "three", "a dog barks ."],
        grades=np.array([1.0, 2.0, 3.0]),
    )
    held = held_pairs(DataSpec(layout="cs224n-sts"), tmp_path)
    left = without_leaks(pairs, held)
    assert left.first == ["one", "a dog barks ."]
    assert left.grades.tolist() == [2.0, 3.0]
    assert without_leaks(left, held) is left


def test_pairs_in_a_sketch_are_left_out_too(headed, suite_data: Path, run) -> None:
    plain = headed.info.model_copy(update={"tasks": {}})
    lines = (suite_data / STS_B).read_text("utf-8").splitlines()
    cells = [line.split("\t") for line in lines[:10]]
    builder = SketchBuilder()
    builder.add_rows([[row[5].upper() for row in cells], [row[6] + "!" for row in cells]])
    model = Model(headed.network, headed.tokenizer, plain, sketch=builder.finish())
    result = run(Sts(["STS-B"]), model, suite_data)
    assert len(result.unleaked["STS-B"].grades) == len(result.sets["STS-B"].grades) - 10


def test_the_courses_own_split_leaks_as_many_pairs_as_known(real_data: Path) -> None:
    held = held_pairs(DataSpec(layout="cs224n-sts"), real_data)
    left = {name: len(without_leaks(read_sts(name, real_data), held).grades) for name in STS_SETS}
    # Of STS-B's 1,379 sts-train holds 951 and sts-dev 148, five of them both. STS-B itself was
    # chosen from the years before it.
    assert left == {
        "STS12": 1898, "STS13": 908, "STS14": 1938, "STS15": 1497, "STS16": 785, "STS-B": 285,
        "SICK-R": 4862,
    }  # fmt: skip


def test_a_constant_model_has_undefined_metrics(headed, suite_data: Path, monkeypatch, run) -> None:
    monkeypatch.setattr(EncodedTexts, "cosines", lambda self, first, second: np.ones(len(first)))
    result = run(Sts(["STS-B"]), headed, suite_data)
    assert result.sets["STS-B"].spearman.value is None
    assert result.sets["STS-B"].spearman.interval is None
    assert result.average is None
