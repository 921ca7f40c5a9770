"""What `fit` is given: names, files and tables of tasks, and what a user says of each."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from tercet.errors import ArgumentError, TercetError
from tercet.fitting.sources import Given, Source, common_folder, gather, names_of

ROWS = [{"text": f"Message {row} of many", "team": ["it", "sales"][row % 2]} for row in range(12)]


def write(path: Path, header: str = "text,team") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = [f"{row['text']},{row['team']}" for row in ROWS]
    path.write_text("\n".join([header, *rows]), "utf-8")
    return path


def gathered(
    folder: Path, *sources: Any, task: Any = None, dev: Any = None, named: Any = None, **given: Any
) -> list[Source]:
    return gather(
        sources, named or {}, task=task, dev=dev, given=Given(**given), folder=folder / "memory"
    )


def test_tasks_are_named_by_files_keywords_or_the_user(tmp_path: Path) -> None:
    files = [write(tmp_path / name) for name in ("my tickets.csv", "b/rows.csv", "c/rows.csv")]
    found = gathered(tmp_path, *files, named={"mail": ROWS})
    assert [source.name for source in found] == ["my-tickets", "rows", "rows-3", "mail"]
    assert [source.path for source in found] == [*files, tmp_path / "memory" / "mail.parquet"]
    assert pq.read_table(found[-1].path).num_rows == 12
    named = gathered(tmp_path, *files, task=["a", "b", "c"])
    assert [source.name for source in named] == ["a", "b", "c"]
    assert names_of([str(files[0]), "x/data.jsonl.gz"], None) == ["my-tickets", "data"]
    (unnamed,) = gathered(tmp_path, ROWS)
    assert unnamed.name == "task"


def test_one_value_is_for_all_and_a_mapping_for_some(tmp_path: Path) -> None:
    one, two = write(tmp_path / "one.csv"), write(tmp_path / "two.csv", "subject,team")
    found = gathered(
        tmp_path, one, two, text={"two": "subject"}, label="team", group={"one": "team"}
    )
    assert [source.look.texts for source in found] == [("text",), ("subject",)]
    assert [source.look.label for source in found] == ["team", "team"]
    assert [source.group for source in found] == ["team", None]
    (pair,) = gathered(tmp_path, one, text=["text", 2], label="team", task="pair")
    assert pair.look.texts == ("text", "team")
    (single,) = gathered(tmp_path, one, text=1, label=2)
    assert single.look.texts == ("text",)


def test_dev_is_a_file_or_a_table_of_each_task(tmp_path: Path) -> None:
    one, two, dev = (write(tmp_path / f"{name}.csv") for name in ("one", "two", "dev"))
    (found,) = gathered(tmp_path, one, dev=dev)
    assert found.dev == dev
    found, plain = gathered(tmp_path, one, two, dev={"one": ROWS})
    assert found.dev == tmp_path / "memory" / "one-dev.parquet"
    assert plain.dev is None
    columns = {name: [row[name] for row in ROWS] for name in ROWS[0]}
    (found,) = gathered(tmp_path, one, dev=columns)
    assert found.dev == tmp_path / "memory" / "one-dev.parquet"


def test_the_common_folder_holds_every_file(tmp_path: Path) -> None:
    one, dev = write(tmp_path / "x" / "one.csv"), write(tmp_path / "y" / "z" / "dev.csv")
    assert common_folder(gathered(tmp_path, one)) == (tmp_path / "x").resolve()
    assert common_folder(gathered(tmp_path, one, dev=dev)) == tmp_path.resolve()


@pytest.mark.parametrize(
    ("arguments", "message", "argument"),
    [
        ({"task": ["a"]}, r"`task` gives 1 names for 2 files", "task"),
        ({"task": ["a", "a"]}, r"`task` names `a` twice", "task"),
        ({"task": ["a", "../a"]}, r"`task` is '../a'; the name of a task may have only", "task"),
        ({"task": ["..", "a"]}, r"`task` is '..'; the name of a task may have only", "task"),
        ({"task": ["a", "/tmp/a"]}, r"`task` is '/tmp/a'; the name", "task"),
        ({"kind": "class"}, r"`kind` is 'class'; it should be one of classes, multi-label", "kind"),
        ({"label": {"three": "team"}}, r"`label` names the task 'three'; the tasks are one, two",
         "label"),
        ({"dev": "dev.csv"}, r"`dev` needs a mapping from task to file", "dev"),
    ],
)  # fmt: skip
def test_mistakes_name_the_argument(
    tmp_path: Path, arguments: Any, message: str, argument: str
) -> None:
    files = [write(tmp_path / "one.csv"), write(tmp_path / "two.csv")]
    with pytest.raises(ArgumentError, match=message) as error:
        gathered(tmp_path, *files, **arguments)
    assert error.value.arguments == (argument,)


def test_nothing_and_no_table_are_told(tmp_path: Path) -> None:
    with pytest.raises(TercetError, match="needs a labelled file or table"):
        gathered(tmp_path)
    with pytest.raises(TercetError, match=r"absent\.csv"):
        gathered(tmp_path, tmp_path / "absent.csv")
    with pytest.raises(TercetError, match=r"Expected a table, not a int"):
        gathered(tmp_path, 3)
    with pytest.raises(TercetError, match=r"the name of a task may have only letters"):
        gathered(tmp_path, ROWS, task="a b")
