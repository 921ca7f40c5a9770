"""`tercet.fit` on the tiny encoder."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import tercet
from tercet.fitting import budget, deadline, planning
from tercet.fitting import fit as fitting

Fit = Callable[..., Any]


@pytest.fixture(scope="session")
def fit(tiny_encoder: Path, tmp_path_factory: pytest.TempPathFactory) -> Fit:
    """`tercet.fit` on the tiny encoder, into a folder of its own."""
    folder = tmp_path_factory.mktemp("fits")
    count = 0

    def run(*sources: Any, **options: Any) -> Any:
        nonlocal count
        count += 1
        given = {"encoder": None if "onto" in options else tiny_encoder, "minutes": 30.0}
        given |= {"device": "cpu", "out": folder / f"run-{count}", **options}
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("TERCET_CACHE", str(folder / "cache"))
            # Fewer steps than users get: the tiny encoder learns little in any number of them.
            patch.setattr(fitting, "base_epochs", lambda _: 10.0)
            for module in (planning, budget, deadline):
                patch.setattr(module, "LEAST_STEPS", 20)
            return tercet.fit(*sources, **given)

    return run
