"""`tercet serve`: every answer of a model over HTTP, and a page to try it on."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from tercet.cli.options import MODEL_HELP, PluginOption
from tercet.errors import TercetError


def _option(name: str, says: str, **more: Any) -> Any:
    """An option with its twin in the environment."""
    return typer.Option(
        f"--{name}", envvar=f"TERCET_{name.upper().replace('-', '_')}", help=says, **more
    )


def serve(
    model: Annotated[str | None, _option("model", MODEL_HELP, metavar="MODEL")] = None,
    index: Annotated[
        Path | None, _option("index", "A folder of `tercet index`, for /search.", metavar="FOLDER")
    ] = None,
    host: Annotated[str, _option("host", "Where to listen.")] = "127.0.0.1",
    port: Annotated[int, _option("port", "0 takes a free one.", min=0, max=65535)] = 8000,
    workers: Annotated[
        int, _option("workers", "Processes, which share the weights in memory.", min=1)
    ] = 1,
    keys: Annotated[
        Path | None,
        _option("keys-file", "API keys, one a line; read again on SIGHUP.", metavar="FILE"),
    ] = None,
    listed_keys: Annotated[
        str | None, typer.Option(envvar="TERCET_KEYS", hidden=True, help="Keys, with commas.")
    ] = None,
    origins: Annotated[
        list[str] | None,
        _option("cors", "A site whose pages may ask; may be given several times.", metavar="URL"),
    ] = None,
    max_inputs: Annotated[int, _option("max-inputs", "Inputs of a request.", min=1)] = 2048,
    max_tokens: Annotated[
        int | None, _option("max-tokens", "Tokens of an input; the model's when left out.", min=4)
    ] = None,
    long_inputs: Annotated[
        Literal["truncate", "refuse"],
        _option("long-inputs", "What becomes of longer inputs, unless a request says."),
    ] = "truncate",
    max_body: Annotated[int, _option("max-body", "Bytes of a request.", min=1)] = 4 * 2**20,
    queue_inputs: Annotated[int, _option("queue-inputs", "Inputs that may wait.", min=1)] = 8192,
    queue_tokens: Annotated[int, _option("queue-tokens", "Tokens that may wait.", min=1)] = 2**19,
    batch_tokens: Annotated[
        int | None,
        _option("batch-tokens", "Tokens that are encoded at once; by the device.", min=1),
    ] = None,
    max_wait: Annotated[
        float, _option("max-wait", "Seconds of work that may wait; above, 429.", min=0.01)
    ] = 5.0,
    timeout: Annotated[float, _option("timeout", "Seconds for a whole request.", min=0.1)] = 30.0,
    plugin: PluginOption = None,
) -> None:
    """Serve a model: OpenAI's and text-embeddings-inference's forms, our own, and a page.

    Every option has a twin in the environment: --max-inputs is TERCET_MAX_INPUTS. API keys may
    also stand in TERCET_KEYS, with commas between. Logs are JSON lines on stderr.

    Example: tercet serve --model runs/best --port 8000
    """
    from tercet.serve.settings import Settings
    from tercet.serve.workers import Workers, bind

    settings = Settings(
        model=model,
        index=index,
        host=host,
        port=port,
        workers=workers,
        keys=keys,
        listed_keys=listed_keys,
        origins=origins or [],
        max_inputs=max_inputs,
        max_tokens=max_tokens,
        max_body=max_body,
        long_inputs=long_inputs,
        queue_inputs=queue_inputs,
        queue_tokens=queue_tokens,
        batch_tokens=batch_tokens,
        max_wait=max_wait,
        timeout=timeout,
    )
    listener = bind(host, port)
    several = Workers(workers) if workers > 1 else None
    try:
        from tercet.serve.server import prepare
        from tercet.serve.server import serve as run
    except ModuleNotFoundError as error:
        raise TercetError("The server needs more parts: pip install 'tercet[serve]'.") from error
    ready = prepare(settings)
    if several is not None and not several.split():
        raise typer.Exit(several.code)
    raise typer.Exit(run(ready, listener))
