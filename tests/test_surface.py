"""What users see first: the public names, how fast they come, and every command's help."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec

import pytest

import tercet
from tercet.cli.app import COMMANDS, load_command

HEAVY = {"torch", "numpy", "pyarrow", "pydantic", "transformers"}
WRITTEN = [name for name in COMMANDS if find_spec(f"tercet.cli.{name}")]


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments],
        capture_output=True,
        text=True,
        env=os.environ | {"COLUMNS": "200"} | environment,
    )


def loaded_by(statement: str) -> set[str]:
    result = run("-c", f"import sys\n{statement}\nprint(*sys.modules, file=sys.stderr)")
    assert result.returncode == 0, result.stderr
    return set(result.stderr.split())


def help_of(*command: str) -> str:
    result = run("-m", "tercet", *command, "--help")
    assert result.returncode == 0, result.stderr
    return result.stdout


@pytest.mark.parametrize(
    "module", ["tercet", "tercet.errors", "tercet.text", "tercet.data", "tercet.weights"]
)
def test_importing_is_cheap(module: str) -> None:
    assert "torch" not in loaded_by(f"import {module}")


def test_importing_the_package_brings_nothing_heavy() -> None:
    assert not HEAVY & loaded_by("import tercet")


def test_recipes_need_no_torch() -> None:
    assert "torch" not in loaded_by("import tercet; tercet.Recipe")


def test_help_brings_nothing_heavy() -> None:
    statement = "from tercet.cli.app import main\nsys.argv = ['tercet', '--help']\n"
    assert not HEAVY & loaded_by(f"{statement}try: main()\nexcept SystemExit: pass")


def test_public_names() -> None:
    assert {"Model", "Recipe", "TercetError", "load", "__version__"} <= set(dir(tercet))
    assert dir(tercet) == sorted(tercet.__all__)
    assert tercet.Recipe.__module__ == "tercet.recipe.recipe"
    with pytest.raises(AttributeError, match="no attribute 'Recipes'"):
        tercet.Recipes  # noqa: B018


def test_no_public_name_is_hidden_by_a_subpackage() -> None:
    result = run(
        "-c",
        "import tercet.cli.evaluate, tercet.evaluation.suites, tercet, types, pkgutil\n"
        "assert isinstance(tercet.evaluate, types.FunctionType)\n"
        "modules = {module.name for module in pkgutil.iter_modules(tercet.__path__)}\n"
        "assert not modules & set(tercet.__all__), modules & set(tercet.__all__)",
    )
    assert result.returncode == 0, result.stderr


def test_help_lists_every_command() -> None:
    result = help_of()
    for name, summary in COMMANDS.items():
        assert name in result
        assert summary in result


@pytest.mark.parametrize("name", WRITTEN)
def test_every_command_has_help_with_an_example(name: str) -> None:
    subcommands = getattr(load_command(name), "commands", {})
    for words in [(name, inner) for inner in subcommands] or [(name,)]:
        assert f"tercet {' '.join(words)} " in help_of(*words).partition("Example")[2]


def test_help_of_a_command_needs_no_torch() -> None:
    for name in WRITTEN:
        assert "torch" not in loaded_by(
            f"from tercet.cli.app import load_command as l; l({name!r})"
        )


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["recips"], "error: No such command 'recips'. Did you mean 'recipes'?"),
        (["recipes", "--nope"], "error: No such option: --nope (Possible options: --copy)"),
        (["recipes", "a", "b"], "error: Got unexpected extra argument(s) (b)"),
    ],
)
def test_a_wrong_call_is_one_sentence(arguments: list[str], sentence: str) -> None:
    result = run("-m", "tercet", *arguments)
    assert (result.returncode, result.stderr.strip(), result.stdout) == (2, sentence, "")


def test_the_version_is_printed() -> None:
    result = run("-m", "tercet", "--version")
    assert (result.returncode, result.stdout) == (0, f"tercet {tercet.__version__}\n")


def test_no_arguments_show_the_help() -> None:
    result = run("-m", "tercet")
    assert result.returncode == 2
    assert "recipes" in result.stdout
    assert result.stderr == ""
