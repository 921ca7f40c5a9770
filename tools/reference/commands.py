"""The commands and their options, from what typer knows of them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Literal, get_args, get_origin

import typer

from reference.markdown import fenced
from tercet.cli.app import COMMANDS, app, load_command


def commands() -> str:
    """Every command with its arguments and options, as `--help` shows them."""
    sections = [_command(words, command) for words, command in all_commands()]
    return "\n".join(sections)


def all_commands() -> Iterator[tuple[str, Any]]:
    yield "tercet", typer.main.get_command(app)
    for name in COMMANDS:
        command = load_command(name)
        for word, each in (getattr(command, "commands", None) or {"": command}).items():
            yield f"tercet {name} {word}".strip(), each


def _command(words: str, command: Any) -> str:
    about, _, example = (command.help or "").partition("Example:")
    # A star at the start of a line would begin a list.
    lines = [f"## {words}\n", re.sub(r"^\*", r"\\*", about.strip(), flags=re.MULTILINE) + "\n"]
    if example:
        lines.append(f"```sh\n{' '.join(example.split())}\n```\n")
    lines.append(f"```{{program}} {words}\n```\n")
    visible = [each for each in command.params if not each.hidden and each.name != "help"]
    return "\n".join(lines + [_option(each) for each in visible])


def _option(parameter: Any) -> str:
    is_argument = not parameter.opts[0].startswith("-")
    value = _value_name(parameter)
    if is_argument:
        names = value
    else:
        value = "" if parameter.is_flag else f" {value}"
        names = ", ".join(f"{each}{value}" for each in parameter.opts + parameter.secondary_opts)
    facts = [parameter.help or ""]
    if parameter.required:
        facts.append("Required.")
    elif parameter.default not in (None, False, ()) and "efault:" not in facts[0]:
        facts.append(f"Default: `{parameter.default}`.")
    if parameter.multiple and "repeated" not in facts[0]:
        facts.append("May be repeated.")
    if parameter.envvar:
        facts.append(f"Environment: `{parameter.envvar}`.")
    return fenced("option", names, " ".join(facts))


def _value_name(parameter: Any) -> str:
    note = parameter.type_descriptor.annotation
    if parameter.metavar:
        return str(parameter.metavar)
    if choices := [each for each in get_args(note) if get_origin(note) is Literal]:
        return "|".join(map(str, choices))
    if not parameter.opts[0].startswith("-"):
        return str(parameter.name).upper()
    return {int: "N", float: "N"}.get(note, str(parameter.name).upper())


def option_variables() -> str:
    """The environment variables that set options of commands."""
    found: dict[str, tuple[Any, list[str]]] = {}
    for words, command in all_commands():
        for each in command.params:
            if each.envvar:
                found.setdefault(each.envvar, (each, []))[1].append(f"`{words}`")
    return "\n".join(_variable(name, *users) for name, users in found.items())


def _variable(name: str, parameter: Any, users: list[str]) -> str:
    option = "" if parameter.hidden else f"`{parameter.opts[0]}` of "
    return f"- `{name}`: {option}{', '.join(users)}. {parameter.help}"
