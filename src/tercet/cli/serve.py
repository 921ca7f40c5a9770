"""`tercet serve`: a model over HTTP, and a web page to try it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from tercet.cli.options import LAYERS_HELP, MODEL_HELP, PluginOption
from tercet.errors import TercetError, install_hint


def _option(name: str, help_text: str, **settings: Any) -> Any:
    """An option that can also be set with an environment variable."""
    variable = f"TERCET_{name.upper().replace('-', '_')}"
    if "min" in settings:
        settings.setdefault("metavar", "N")
    return typer.Option(f"--{name}", envvar=variable, help=help_text, **settings)


def serve(
    model: Annotated[str | None, _option("model", MODEL_HELP, metavar="MODEL")] = None,
    layers: Annotated[int | None, _option("layers", LAYERS_HELP, metavar="N", min=1)] = None,
    index: Annotated[
        Path | None, _option("index", "The folder of an index, for /search.", metavar="FOLDER")
    ] = None,
    host: Annotated[
        str, _option("host", "The address to listen on.", metavar="HOST")
    ] = "127.0.0.1",
    port: Annotated[
        int, _option("port", "The port to listen on; 0 picks a free one.", min=0, max=65535)
    ] = 8000,
    workers: Annotated[
        int, _option("workers", "Number of processes; they share the weights in memory.", min=1)
    ] = 1,
    keys: Annotated[
        Path | None,
        _option("keys-file", "API keys, one per line; reloaded on SIGHUP.", metavar="FILE"),
    ] = None,
    listed_keys: Annotated[
        str | None,
        typer.Option(envvar="TERCET_KEYS", hidden=True, help="Keys, separated by commas."),
    ] = None,
    origins: Annotated[
        list[str] | None,
        _option("cors", "A site whose pages may send requests; may be repeated.", metavar="URL"),
    ] = None,
    allowed_hosts: Annotated[
        list[str] | None,
        _option(
            "allowed-host",
            "A name that the header Host may have, besides localhost; may be repeated.",
            metavar="NAME",
        ),
    ] = None,
    max_inputs: Annotated[int, _option("max-inputs", "The most inputs per request.", min=1)] = 2048,
    max_tokens: Annotated[
        int | None,
        _option("max-tokens", "The most tokens per input; default: the model's own limit.", min=4),
    ] = None,
    long_inputs: Annotated[
        Literal["truncate", "windows", "refuse"] | None,
        _option(
            "long-inputs",
            "Truncate longer inputs, read them in windows, or refuse them; default: the model's "
            "setting. A request may override it.",
        ),
    ] = None,
    max_body: Annotated[int, _option("max-body", "The most bytes per request.", min=1)] = 4 * 2**20,
    queue_inputs: Annotated[
        int, _option("queue-inputs", "The most inputs in the queue.", min=1)
    ] = 8192,
    queue_tokens: Annotated[
        int, _option("queue-tokens", "The most tokens in the queue.", min=1)
    ] = 2**19,
    batch_tokens: Annotated[
        int | None,
        _option("batch-tokens", "Tokens per batch; default: depends on the device.", min=1),
    ] = None,
    max_wait: Annotated[
        float,
        _option("max-wait", "The most seconds of queued work; beyond that, status 429.", min=0.01),
    ] = 5.0,
    timeout: Annotated[float, _option("timeout", "The most seconds per request.", min=0.1)] = 30.0,
    plugin: PluginOption = None,
) -> None:
    """Serve a model with the APIs of OpenAI, text-embeddings-inference and Tercet, and a web page.

    Every option can also be set with an environment variable: --max-inputs with TERCET_MAX_INPUTS.
    API keys can also be set in TERCET_KEYS, separated by commas. Logs are JSON lines on stderr.

    Example: tercet serve --model runs/best --port 8000
    """
    from tercet.serve.accepting import Occupancy
    from tercet.serve.settings import Settings
    from tercet.serve.workers import Workers, bind

    settings = Settings(
        model=model,
        layers=layers,
        index=index,
        keys=keys,
        listed_keys=listed_keys,
        origins=origins or [],
        allowed_hosts=allowed_hosts or [],
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
    processes = Workers(workers) if workers > 1 else None
    try:
        from tercet.serve.loading import prepare
        from tercet.serve.server import serve as run
    except ModuleNotFoundError as error:
        raise TercetError(f"The server needs more packages: {install_hint('serve')}.") from error
    ready = prepare(settings)
    if processes is None:
        raise typer.Exit(run(ready, listener, Occupancy(1)))
    if not processes.split(ready.refresh):
        raise typer.Exit(processes.code)
    raise typer.Exit(run(ready, listener, processes.occupancy))
