"""What is published: the metadata of the package, and the container of the server."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import tercet

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
# What torch's builds for CUDA require exactly, which are those of the public index. Its builds for
# CPUs require no triton, so an environment with one of them does not say so: read the metadata of
# the other when torch is updated.
TRITON_OF_TORCH = {"2.13.0": "3.7.1"}


def test_every_supported_python_is_a_classifier() -> None:
    found = re.findall(r"Python :: (3\.\d+)", "\n".join(PROJECT["classifiers"]))
    assert found == ["3.11", "3.12", "3.13", "3.14"]
    assert PROJECT["requires-python"] == f">={found[0]}"


def test_the_newest_changes_are_those_of_this_version() -> None:
    page = (ROOT / "CHANGELOG.md").read_text("utf-8")
    versions = re.findall(r"^## \[(\S+)\]", page, re.MULTILINE)
    assert versions[0] == tercet.__version__


def test_changes_are_listed_by_kind() -> None:
    page = (ROOT / "CHANGELOG.md").read_text("utf-8")
    kinds = ("Added", "Changed", "Deprecated", "Removed", "Fixed", "Security")
    for version in page.split("\n## ")[1:]:
        found = re.findall(r"^### (.+)", version, re.MULTILINE)
        assert found
        assert found == [kind for kind in kinds if kind in found]


def test_the_container_copies_and_installs_what_exists() -> None:
    lines = (ROOT / "Dockerfile").read_text("utf-8").splitlines()
    copied = {name for line in lines if line.startswith("COPY") for name in line.split()[1:-1]}
    built_by_the_user = {"model"}
    assert all((ROOT / name).exists() for name in copied - built_by_the_user)
    # The build needs what the metadata names.
    assert {"pyproject.toml", "src", PROJECT["readme"], *PROJECT["license-files"]} <= copied
    (install,) = (line for line in lines if line.startswith("RUN pip install"))
    extras = re.findall(r"\w+", install.partition("[")[2])
    assert extras
    assert set(extras) <= set(PROJECT["optional-dependencies"])
    (start,) = (line for line in lines if line.startswith("ENTRYPOINT"))
    assert '"tercet", "serve"' in start


def test_every_part_that_users_install_has_a_lowest_version() -> None:
    extras = PROJECT["optional-dependencies"]
    needed = [*PROJECT["dependencies"], *(part for e in extras if e != "dev" for part in extras[e])]
    assert [part for part in needed if ">=" not in part] == []


def test_the_pins_can_be_installed_with_torch_for_cuda() -> None:
    text = (ROOT / "constraints.txt").read_text("utf-8")
    pins = dict(re.findall(r"^([\w.-]+)==(\S+)$", text, re.MULTILINE))
    assert pins["triton"] == TRITON_OF_TORCH[pins["torch"]]
