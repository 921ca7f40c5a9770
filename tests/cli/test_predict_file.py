"""`tercet predict` from file to file, and against labels."""

from __future__ import annotations

import csv
import io
import json
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from sklearn.metrics import accuracy_score, f1_score

from tercet.cli import predict as predict_module
from tercet.cli.app import main
from tercet.folders.model_card import ModelInfo
from tercet.model import Model
from tercet.network.network import Network
from tercet.nn.folder import load_encoder
from tercet.specs import TaskSpec
from tercet.text.tokenizer import Tokenizer

pytestmark = pytest.mark.usefixtures("on_cpu")
MLP = {"kind": "mlp"}
CLASSES = ["bad", "so so", "good"]
TASKS = {
    name: TaskSpec.model_validate(block)
    for name, block in {
        "mood": {
            "data": {"layout": "cs224n-sst"},
            "labels": CLASSES,
            "single": {"head": MLP, "objective": {"kind": "cross-entropy"}},
        },
        "spam": {
            "data": {"layout": "cs224n-sst"},
            "labels": ["ham", "spam"],
            "single": {"head": MLP, "objective": {"kind": "binary-cross-entropy"}},
        },
        "same": {
            "data": {"layout": "cs224n-quora"},
            "labels": ["different", "same"],
            "cross": {"head": MLP, "objective": {"kind": "binary-cross-entropy"}},
        },
        "similarity": {
            "data": {"layout": "cs224n-sts"},
            "range": [0, 5],
            "bi": {
                "head": {"kind": "cosine"},
                "objective": {"kind": "mean-squared-error", "targets": [0, 1]},
            },
        },
        "queue": {
            "data": {"train": "t.csv", "texts": "message", "label": "team"},
            "labels": CLASSES,
            "single": {"head": MLP, "objective": {"kind": "cross-entropy"}},
        },
        "tags": {
            "data": {"train": "t.csv", "texts": "text", "label": "tags", "label_separator": ";"},
            "labels": CLASSES,
            "multi_label": True,
            "single": {"head": MLP, "objective": {"kind": "binary-cross-entropy"}},
        },
    }.items()
}
WORDS = ["dull", "film", "about", "nothing", "stays", "with", "you", "for", "very", "long", "time"]
TEXTS = [" ".join(WORDS[row % 7 : row % 7 + 1 + row % 5]) for row in range(23)]


@pytest.fixture(scope="module")
def model(tiny_encoder: Path) -> Model:
    torch.manual_seed(0)
    network = Network(load_encoder(tiny_encoder), pooling="mean", tasks=TASKS)
    for parameter in network.heads.parameters():
        torch.nn.init.normal_(parameter, std=1.0)
    info = ModelInfo(encoder="tiny", pooling="mean", max_tokens=64, tasks=TASKS)
    model = Model(network, Tokenizer.load(tiny_encoder), info)
    # Thresholds at which about every second text has each of the labels, between those of two
    # texts: probabilities differ in the last digit with the rows beside them.
    probabilities = np.sort(model.predictions("tags", TEXTS), axis=0)
    middle = probabilities[len(TEXTS) // 2 :][:2].mean(axis=0).tolist()
    model.info = info.model_copy(update={"thresholds": {"tags": {"single": middle}}})
    return model


@pytest.fixture(scope="module")
def folder(model: Model, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("saved") / "model"
    model.save(folder)
    return folder


@pytest.fixture
def predict(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    """Exit code, stdout and stderr of a call."""
    monkeypatch.setattr(predict_module, "FILE_BLOCK", 5)

    def run(*arguments: object) -> tuple[object, str, str]:
        monkeypatch.setattr(
            sys, "argv", ["tercet", "predict", *map(str, arguments), "--model", str(folder)]
        )
        with pytest.raises(SystemExit) as end:
            main()
        output = capsys.readouterr()
        return end.value.code, output.out, output.err

    return run


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A file with a number that must not change, an empty cell, and labels."""
    rows = [[f"00{n}", text, "1.50", "", CLASSES[n % 3]] for n, text in enumerate(TEXTS)]
    written = io.StringIO(newline="")
    csv.writer(written).writerows([["key", "text", "price", "note", "team"], *rows])
    file = tmp_path / "tickets.csv"
    file.write_text(written.getvalue(), "utf-8", newline="")
    return file


def cells_of(file: Path, delimiter: str = ",") -> list[dict[str, str]]:
    with file.open(encoding="utf-8", newline="") as opened:
        return list(csv.DictReader(opened, delimiter=delimiter))


def test_the_columns_of_the_task_s_own_data_are_found(
    predict, model: Model, tmp_path: Path
) -> None:
    file = tmp_path / "new.csv"
    rows = [[f"N-{n}", text, "a word"] for n, text in enumerate(TEXTS)]
    with file.open("w", encoding="utf-8", newline="") as opened:
        csv.writer(opened).writerows([["ticket", "message", "note"], *rows])
    out = tmp_path / "out.csv"
    code, _, _ = predict("queue", file, "--out", out)
    assert code == 0
    assert [row["name"] for row in cells_of(out)] == [p.name for p in model.predict("queue", TEXTS)]


def test_a_csv_keeps_its_columns_and_gets_the_predictions(
    predict, model: Model, source: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out.csv"
    code, printed, talk = predict("mood", source, "--out", out)
    assert (code, printed) == (0, "")
    assert f"Wrote 23 of 23 rows to {out}." in talk
    before, after = cells_of(source), cells_of(out)
    added = ["label", "name", "p_bad", "p_so so", "p_good"]
    assert list(after[0]) == [*before[0], *added]
    assert [{name: row[name] for name in before[0]} for row in after] == before
    found = model.predict("mood", TEXTS)
    assert [row["name"] for row in after] == [each.name for each in found]
    assert [int(row["label"]) for row in after] == [each.label for each in found]
    shares = [[float(row[name]) for name in added[2:]] for row in after]
    assert np.allclose(shares, [each.probabilities for each in found], atol=1e-5)


def test_two_classes_have_the_shape_of_three(predict, source: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.tsv"
    predict("spam", source, "--out", out)
    rows = cells_of(out, "\t")
    assert list(rows[0])[5:] == ["label", "name", "p_ham", "p_spam"]
    for row in rows:
        assert float(row["p_ham"]) + float(row["p_spam"]) == pytest.approx(1, abs=1e-5)
    line = json.loads(predict("spam", "--text", "a film")[1])
    assert set(line) == {"text", "label", "name", "probabilities"}
    assert list(line["probabilities"]) == ["ham", "spam"]


def test_parquet_and_json_lines_keep_types_and_nesting(predict, tmp_path: Path, source) -> None:
    out = tmp_path / "out.parquet"
    predict("mood", source, "--out", out)
    table = pq.read_table(out)
    assert table.schema.field("price").type == pa.float64()
    assert table.schema.field("label").type == pa.int64()
    assert table.schema.field("p_good").type == pa.float32()
    assert table.column("key").to_pylist()[3] == "003"
    assert table.column("note").to_pylist() == [None] * 23
    lines = tmp_path / "in.jsonl"
    rows = [{"id": n, "text": text, "tags": [n, {"a": "é"}]} for n, text in enumerate(TEXTS)]
    lines.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    predict("mood", lines, "--out", tmp_path / "out.jsonl")
    written = [json.loads(line) for line in (tmp_path / "out.jsonl").open(encoding="utf-8")]
    assert [{name: row[name] for name in ("id", "text", "tags")} for row in written] == rows
    assert [row["name"] for row in written] == table.column("name").to_pylist()
    # From Parquet, and nested values into a delimited file.
    nested = tmp_path / "nested.parquet"
    pq.write_table(pa.Table.from_pylist([{"text": "a", "tags": ["x", "y"]}]), nested)
    predict("mood", nested, "--out", tmp_path / "flat.csv")
    assert cells_of(tmp_path / "flat.csv")[0]["tags"] == '["x", "y"]'
    predict("mood", nested, "--out", tmp_path / "again.parquet")
    assert pq.read_table(tmp_path / "again.parquet").column("tags").to_pylist() == [["x", "y"]]


def test_grades_and_pairs(predict, model: Model, tmp_path: Path) -> None:
    file = tmp_path / "pairs.csv"
    file.write_text("first,similarity,second\na film,4,the film\nx,1,y\n", "utf-8")
    columns = ["--column", "first", "--column", "second"]
    code, _, talk = predict("similarity", file, *columns, "--out", tmp_path / "out.csv")
    assert code == 0
    assert "already has a column `similarity`: the prediction is in `predicted_similarity`" in talk
    rows = cells_of(tmp_path / "out.csv")
    assert list(rows[0]) == ["first", "similarity", "second", "predicted_similarity"]
    grades = model.similarity([("a film", "the film"), ("x", "y")])
    assert [float(row["predicted_similarity"]) for row in rows] == pytest.approx(grades, abs=1e-5)
    _, _, talk = predict("similarity", file, *columns, "--label", "similarity")
    assert [line.split("\t")[0] for line in talk.splitlines()] == ["Metric", "pearson", "spearman"]


def test_a_column_that_is_there_already_stays(predict, tmp_path: Path) -> None:
    file = tmp_path / "in.csv"
    file.write_text("text,label,mood_label\na film,7,8\n", "utf-8")
    _, _, talk = predict("mood", file, "--out", tmp_path / "out.csv")
    assert "already has a column `label`: the prediction is in `mood_label_2`." in talk
    (row,) = cells_of(tmp_path / "out.csv")
    assert list(row)[:5] == ["text", "label", "mood_label", "mood_label_2", "name"]
    assert (row["label"], row["mood_label"]) == ("7", "8")


def test_cells_that_a_spreadsheet_would_run_are_made_text(predict, tmp_path: Path) -> None:
    file = tmp_path / "in.tsv"
    texts = ["=HYPERLINK(1)", "@SUM(A1)", "+1 for this", "-", "-1.5", "+2e3", "fine = good"]
    file.write_text("text\t=evil\n" + "".join(f"{text}\t1\n" for text in texts), "utf-8")
    code, _, talk = predict("mood", file, "--out", tmp_path / "out.csv")
    assert code == 0
    assert "5 cells begin like a formula" in talk
    rows = cells_of(tmp_path / "out.csv")
    assert [row["text"] for row in rows] == [f"'{text}" for text in texts[:4]] + texts[4:]
    assert "'=evil" in rows[0]
    # Other formats hold the texts as they are.
    _, _, talk = predict("mood", file, "--out", tmp_path / "out.jsonl")
    assert "formula" not in talk
    first = (tmp_path / "out.jsonl").read_text("utf-8").splitlines()[0]
    assert json.loads(first)["text"] == texts[0]


def test_labels_score_the_predictions(predict, model: Model, source: Path, tmp_path: Path) -> None:
    code, printed, talk = predict("mood", source, "--label", "team")
    assert code == 0
    labels = [row % 3 for row in range(23)]
    found = [each.label for each in model.predict("mood", TEXTS)]
    lines = [line.split("\t") for line in talk.splitlines()]
    assert lines == [
        ["Metric", "Value", "Rows"],
        ["accuracy", f"{accuracy_score(labels, found):.4f}", "23"],
        ["macro-f1", f"{f1_score(labels, found, average='macro'):.4f}", "23"],
    ]
    assert [json.loads(line)["expected"] for line in printed.splitlines()] == [
        CLASSES[label] for label in labels
    ]
    out = tmp_path / "wrong.csv"
    _, _, talk = predict("mood", source, "--label", "team", "--wrong-only", "--out", out)
    wrong = [row for row in range(23) if labels[row] != found[row]]
    assert [row["key"] for row in cells_of(out)] == [f"00{row}" for row in wrong]
    assert f"Wrote {len(wrong)} of 23 rows" in talk
    assert f"accuracy\t{accuracy_score(labels, found):.4f}\t23" in talk
    _, printed, _ = predict("mood", source, "--label", "team", "--wrong-only")
    assert [json.loads(line)["text"] for line in printed.splitlines()] == [TEXTS[r] for r in wrong]
    lines_out = tmp_path / "wrong.jsonl"
    predict("mood", source, "--label", "team", "--wrong-only", "--out", lines_out)
    assert len(lines_out.read_text("utf-8").splitlines()) == len(wrong)


def test_a_threshold_moves_the_line_between_two_classes(predict, model, source, tmp_path) -> None:
    shares = [each.probabilities[1] for each in model.predict("spam", TEXTS)]
    line = sorted(shares)[7]
    middle = (line + sorted(shares)[6]) / 2
    expected = [int(share >= middle) for share in shares]
    out = tmp_path / "out.csv"
    predict("spam", source, "--out", out, "--threshold", middle)
    assert [int(row["label"]) for row in cells_of(out)] == expected
    labelled = tmp_path / "labelled.csv"
    with labelled.open("w", encoding="utf-8", newline="") as opened:
        csv.writer(opened).writerows(
            [["text", "kind"], *zip(TEXTS, ["ham", "spam"] * 12, strict=False)]
        )
    _, printed, talk = predict("spam", labelled, "--label", "kind", "--threshold", middle)
    assert [json.loads(line)["label"] for line in printed.splitlines()] == expected
    truth = [row % 2 for row in range(23)]
    assert f"accuracy\t{accuracy_score(truth, expected):.4f}\t23" in talk


def tags_of(row: int) -> list[str]:
    """Labels that a row has: none, one or two."""
    return [CLASSES[row % 3], CLASSES[(row + 1) % 3]][: row % 4 % 3]


def test_several_labels_are_columns_of_a_file(predict, model: Model, source, tmp_path) -> None:
    found = model.predict("tags", TEXTS)
    assert len({tuple(each.labels) for each in found}) > 2
    for suffix in (".csv", ".parquet", ".jsonl"):
        out = tmp_path / f"out{suffix}"
        assert predict("tags", source, "--out", out)[0] == 0
    rows = cells_of(tmp_path / "out.csv")
    assert list(rows[0])[5:] == ["labels", "names", "p_bad", "p_so so", "p_good"]
    assert [row["labels"] for row in rows] == [", ".join(map(str, each.labels)) for each in found]
    assert [row["names"] for row in rows] == [", ".join(each.names) for each in found]
    shares = [[float(row[f"p_{name}"]) for name in CLASSES] for row in rows]
    np.testing.assert_allclose(shares, [each.probabilities for each in found], atol=1e-6)
    names = [row["names"] for row in rows]
    assert pq.read_table(tmp_path / "out.parquet").column("names").to_pylist() == names
    lines = (tmp_path / "out.jsonl").read_text("utf-8").splitlines()
    assert [json.loads(line)["names"] for line in lines] == names


def test_several_labels_are_scored(predict, model: Model, tmp_path: Path) -> None:
    found = model.predict("tags", TEXTS)
    truth = np.array([[name in tags_of(row) for name in CLASSES] for row in range(23)])
    decided = np.array([[name in each.names for name in CLASSES] for each in found])
    wrong = np.flatnonzero((truth != decided).any(axis=1)).tolist()
    assert 0 < len(wrong) < 23
    table, lists = tmp_path / "tags.csv", tmp_path / "tags.jsonl"
    with table.open("w", encoding="utf-8", newline="") as opened:
        rows = [[text, "; ".join(tags_of(row))] for row, text in enumerate(TEXTS)]
        csv.writer(opened).writerows([["text", "tags"], *rows])
    lists.write_text(
        "".join(
            json.dumps({"text": text, "tags": tags_of(row)}) + "\n"
            for row, text in enumerate(TEXTS)
        ),
        "utf-8",
    )
    for file in (table, lists):
        code, printed, talk = predict("tags", file, "--label", "tags")
        assert code == 0
        assert [line.split("\t") for line in talk.splitlines()] == [
            ["Metric", "Value", "Rows"],
            ["micro-f1", f"{f1_score(truth, decided, average='micro'):.4f}", "23"],
            ["macro-f1", f"{f1_score(truth, decided, average='macro'):.4f}", "23"],
            ["exact-match", f"{accuracy_score(truth, decided):.4f}", "23"],
        ]
        first = json.loads(printed.splitlines()[1])
        assert first == {
            "text": TEXTS[1],
            "labels": found[1].labels,
            "names": found[1].names,
            "probabilities": pytest.approx(
                dict(zip(CLASSES, found[1].probabilities, strict=True)), abs=1e-6
            ),
            "expected": [name for name in CLASSES if name in tags_of(1)],
        }
        _, printed, _ = predict("tags", file, "--label", "tags", "--wrong-only")
        assert [json.loads(line)["text"] for line in printed.splitlines()] == [
            TEXTS[row] for row in wrong
        ]
    out = tmp_path / "wrong.csv"
    predict("tags", table, "--label", "tags", "--wrong-only", "--out", out)
    assert [row["text"] for row in cells_of(out)] == [TEXTS[row] for row in wrong]


def test_rows_are_the_same_with_blank_lines_and_without_a_header(predict, tmp_path: Path) -> None:
    file = tmp_path / "in.csv"
    file.write_text('"a film","x"\n\n"two\nlines","y"\n' + '"b","z"\n' * 4 + "\n\n", "utf-8")
    code, _, _ = predict("mood", file, "--column", "1", "--out", tmp_path / "out.csv")
    assert code == 0
    rows = cells_of(tmp_path / "out.csv")
    assert [row["column_1"] for row in rows] == ["a film", "", "two\nlines", *"bbbb"]
    assert [row["column_2"] for row in rows] == ["x", "", "y", *"zzzz"]
    lines = tmp_path / "in.txt"
    lines.write_text(" one \n\ntwo\n\n", "utf-8")
    predict("mood", lines, "--out", tmp_path / "text.csv")
    assert [row["text"] for row in cells_of(tmp_path / "text.csv")] == [" one ", "", "two"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["mood", "FILE", "--out", "out.xlsx"], "unknown kind of file `.xlsx`"),
        (["mood", "FILE", "--out", "none/out.csv"], "its folder does not exist"),
        (["mood", "--text", "a", "--out", "out.csv"], "--out needs FILE"),
        (["mood", "-", "--label", "team"], "--label needs FILE"),
        (["mood", "FILE", "--wrong-only"], "--wrong-only needs --label"),
        (["mood", "FILE", "--threshold", "0.5"], "--threshold needs a task with two classes"),
        (["spam", "FILE", "--threshold", "50"], "from 0 to 1"),
        (["tags", "FILE", "--threshold", "0.5"], "`tags` has several labels per input"),
        (["mood", "FILE", "--label", "teams"], "did you mean `team`"),
        (["mood", "FILE", "--label", "key"], r"tickets.csv line 5: column `key` is '003', "),
        (["mood", "FILE", "--label", "note"], "line 2: column `note` holds no label"),
    ],
)
def test_mistakes_are_one_sentence(predict, source: Path, arguments, message: str) -> None:
    given = [str(source) if each == "FILE" else each for each in arguments]
    code, printed, talk = predict(*given)
    assert (code, printed) == (2, "")
    assert message in talk
    assert talk.count("\n") == 1


def test_columns_that_cannot_be_told_are_selected_with_an_option(predict, tmp_path: Path) -> None:
    file = tmp_path / "in.csv"
    file.write_text("title,body\nRain,It rained.\nSun,It shone.\n", "utf-8")
    code, _, talk = predict("mood", file)
    assert (code, talk) == (
        2,
        f"error: {file}: cannot tell which columns are texts; select them with --column, by name "
        "or number: 1 ('title'), 2 ('body').\n",
    )


def test_two_columns_of_one_name_are_refused(predict, tmp_path: Path) -> None:
    file = tmp_path / "in.csv"
    file.write_text("text,a,a\nfine,1,2\n", "utf-8")
    code, _, talk = predict("mood", file, "--column", "text", "--out", tmp_path / "out.jsonl")
    assert (code, "two columns are called `a`" in talk) == (2, True)


def test_an_error_leaves_no_file(predict, source: Path, tmp_path: Path, monkeypatch) -> None:
    out = tmp_path / "out.csv"
    out.write_text("old", "utf-8")
    calls = []

    def fail(*arguments: object, **options: object) -> object:
        calls.append(1)
        if len(calls) > 3:
            raise OSError(28, "No space left on device")
        return original(*arguments, **options)

    original = Model.predictions
    monkeypatch.setattr(Model, "predictions", fail)
    code, _, talk = predict("mood", source, "--out", out)
    assert (code, "No space left" in talk) == (2, True)
    assert out.read_text("utf-8") == "old"
    assert {path.name for path in tmp_path.iterdir()} == {"tickets.csv", "out.csv"}


def test_wrong_rows_do_not_replace_the_file_that_they_are_of(predict, source: Path) -> None:
    before = source.read_bytes()
    code, _, talk = predict("mood", source, "--label", "team", "--wrong-only", "--out", source)
    assert code == 2
    assert "is the file that is read" in talk
    assert source.read_bytes() == before


@pytest.mark.parametrize(
    "column",
    [
        pa.array([2**31 - 1] * 2, pa.date32()),
        pa.array([2**62] * 2, pa.timestamp("us")),
        pa.array([1] * 2, pa.timestamp("us", tz="No/Zone")),
    ],
)
@pytest.mark.parametrize("name", ["out.jsonl", "out.csv"])
def test_times_that_cannot_be_written_out_end_in_no_traceback(
    predict, tmp_path: Path, column: pa.Array, name: str
) -> None:
    pq.write_table(pa.table({"text": ["a", "b"], "when": column}), tmp_path / "in.parquet")
    code, _, talk = predict("mood", tmp_path / "in.parquet", "--out", tmp_path / name)
    assert code == 0 or (code == 2 and talk.splitlines()[-1].startswith("error: "))
    if str(column.type) != "timestamp[us, tz=No/Zone]":
        assert code == 0
        assert "when" in (tmp_path / name).read_text("utf-8")
