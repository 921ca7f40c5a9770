"""SIGHUP in a worker: keys, model and index are read again, while requests are answered."""

from __future__ import annotations

import asyncio
import gc
from pathlib import Path
from typing import TYPE_CHECKING

from tercet.errors import TercetError, install_hint
from tercet.model import Model
from tercet.serve.batcher import Batcher
from tercet.serve.document import Api
from tercet.serve.loading import Loaded, Ready, log_not_reloaded
from tercet.serve.logs import log
from tercet.serve.service import Service

if TYPE_CHECKING:
    from tercet.search.index import Index

WARM_UP = "The first text is slow: weights are mapped and threads started."


class Reload:
    """Replaces what a worker serves by what its files hold now."""

    def __init__(self, ready: Ready, api: Api, batcher: Batcher) -> None:
        self._ready = ready
        self._api = api
        self._batcher = batcher
        self._turn = asyncio.Lock()

    async def __call__(self) -> None:
        """Keys first: a model that cannot be loaded must not keep revoked keys valid."""
        keys_are_read = self._ready.reload_keys()
        async with self._turn:
            try:
                await self._reload_model()
            except Exception as error:  # noqa: BLE001 (the old model keeps answering)
                log_not_reloaded(error)
                return
        if keys_are_read:
            log("reloaded", tasks=list(self._api.state.service.model.tasks))

    async def _reload_model(self) -> None:
        service: Service = self._api.state.service
        loaded = await asyncio.to_thread(self._ready.newer)
        if loaded is None:
            if service.index is not None:
                await asyncio.to_thread(service.index.refresh)
            return
        newer = await asyncio.to_thread(make_service, self._ready, loaded, self._batcher)
        # No await from here on: requests see all of the old or all of the new.
        self._ready.loaded = loaded
        self._batcher.limits = loaded.limits
        self._api.serve_from(newer)
        gc.freeze()


def make_service(ready: Ready, loaded: Loaded, batcher: Batcher) -> Service:
    """A service that answers at once."""
    index = ready.settings.index
    opened = open_index(index, loaded.model) if index is not None else None
    loaded.model.embed([WARM_UP])
    return Service(loaded.model, loaded.limits, batcher, opened)


def open_index(folder: Path, model: Model) -> Index:
    """The index; raises if another model made its vectors."""
    try:
        from tercet.search.index import Index
    except ModuleNotFoundError as error:
        raise TercetError(f"An index needs Lance: {install_hint('search')}.") from error
    return Index.open(folder, model)
