from __future__ import annotations

import sys
import tomllib
from pathlib import Path

import pytest

from tercet.cli.app import main
from tercet.recipe import Recipe, bundled

NAMES = [recipe.name for recipe in bundled()]


@pytest.fixture
def tercet(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    """Exit code, stdout and stderr of a call."""

    def run(*arguments: object) -> tuple[object, str, str]:
        monkeypatch.setattr(sys, "argv", ["tercet", "recipes", *map(str, arguments)])
        with pytest.raises(SystemExit) as end:
            main()
        result = capsys.readouterr()
        return end.value.code, result.out, result.err

    return run


def test_the_list_has_name_report_and_summary(tercet) -> None:
    code, result, talk = tercet()
    lines = [line.split("\t") for line in result.splitlines()]
    assert (code, talk) == (0, "")
    assert [line[0] for line in lines] == ["recipe", *NAMES]
    for name, report, summary in lines[1:]:
        recipe = Recipe.load(name)
        assert (report, summary) == (recipe.report or "", recipe.summary)


@pytest.mark.parametrize("name", NAMES)
def test_a_recipe_is_shown_as_it_is_and_opens_with_its_command(tercet, name: str) -> None:
    code, result, _ = tercet(name)
    assert code == 0
    assert result.startswith(f"# tercet train {name} ")
    assert Recipe.from_tree(tomllib.loads(result), where=name).name == name


def test_a_copy_trains_as_the_original(tercet, tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    code, result, talk = tercet(NAMES[0], "--copy", file)
    assert (code, result) == (0, "")
    assert str(file) in talk
    assert Recipe.load(file) == Recipe.load(NAMES[0])


def test_a_copy_overwrites_nothing(tercet, tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text("mine")
    code, _, talk = tercet(NAMES[0], "--copy", file)
    assert (code, talk) == (2, f"error: {file}: already exists and is not overwritten.\n")
    assert file.read_text() == "mine"


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["bertology/head-mud"], "did you mean `bertology/head-mod`?"),
        (["--copy", "x.toml"], "needs the name of a recipe"),
        ([NAMES[0], "--copy", "nowhere/x.toml"], "nowhere/x.toml: No such file or directory."),
        ([NAMES[0], "--copy", "."], ".: already exists"),
    ],
)
def test_mistakes_are_one_sentence(
    tercet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], reason: str
) -> None:
    monkeypatch.chdir(tmp_path)
    code, result, talk = tercet(*arguments)
    assert (code, result) == (2, "")
    assert reason in talk
    assert talk.count("\n") == 1
    assert not list(tmp_path.iterdir())
