from __future__ import annotations

from dataclasses import replace

import pytest

from tercet.errors import TercetError
from tercet.serve.settings import Limits

FITTING = Limits(
    inputs=16,
    tokens=64,
    body=4096,
    long_inputs="truncate",
    queue_inputs=32,
    queue_tokens=1024,
    batch_tokens=256,
    wait=5.0,
    timeout=30.0,
)


def test_limits_that_fit_are_taken() -> None:
    FITTING.check(model_tokens=64)


@pytest.mark.parametrize(
    ("change", "names"),
    [
        ({"tokens": 65}, ["`max_tokens` 65", "64"]),
        ({"inputs": 33}, ["`max_inputs` 33", "`queue_inputs` 32"]),
        ({"batch_tokens": 63}, ["`max_tokens` 64", "`batch_tokens` 63"]),
        ({"queue_tokens": 255}, ["`batch_tokens` 256", "`queue_tokens` 255"]),
        ({"timeout": 4.0}, ["`max_wait` 5", "`timeout` 4"]),
        ({"body": 40}, ["`max_inputs` 16", "`max_body` 40"]),
    ],
)
def test_limits_that_contradict_each_other_are_both_named(
    change: dict[str, int], names: list[str]
) -> None:
    with pytest.raises(TercetError) as result:
        replace(FITTING, **change).check(model_tokens=64)
    for name in names:
        assert name in str(result.value)
