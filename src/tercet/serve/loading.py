"""The model of a server: loaded and checked against the settings, and again when its folder
changes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tercet.errors import TercetError
from tercet.model import Model, find_local_folder, load
from tercet.serve.keys import Keys
from tercet.serve.logs import log, log_failure
from tercet.serve.settings import Limits, Settings

ATTEMPTS = 5
"""How often a folder may be replaced while it is read."""
FolderState = tuple[tuple[str, int, int, int], ...] | None


@dataclass(frozen=True, slots=True)
class Loaded:
    """A model with its limits.

    state: of the files that it was read from
    """

    model: Model
    limits: Limits
    state: FolderState


@dataclass(slots=True)
class Ready:
    """What workers share: checked settings, keys and the loaded model."""

    settings: Settings
    keys: Keys
    loaded: Loaded

    def reload_keys(self) -> bool:
        """Read the keys again; False if they cannot be read, and the old ones stay valid."""
        try:
            self.keys.reload()
        except TercetError as error:
            log_failure("not-reloaded", error)
            return False
        return True

    def newer(self) -> Loaded | None:
        """The model as it is now, if its folder has changed."""
        if folder_state(self.settings.model) == self.loaded.state:
            return None
        return load_model(self.settings)

    def refresh(self) -> None:
        """Reload keys and model; what cannot be read stays as it is."""
        self.reload_keys()
        try:
            self.loaded = self.newer() or self.loaded
        except Exception as error:  # noqa: BLE001 (the workers must stay up)
            log_not_reloaded(error)


def prepare(settings: Settings) -> Ready:
    """Load the model and check the settings against it."""
    keys = Keys(file=settings.keys, listed=settings.listed_keys)
    return Ready(settings, keys, load_model(settings))


def load_model(settings: Settings) -> Loaded:
    """The model of the settings; all its files are of one moment, whoever replaces its folder."""
    for _ in range(ATTEMPTS):
        before = folder_state(settings.model)
        try:
            model = load(settings.model, layers=settings.layers)
        except (TercetError, OSError):
            if folder_state(settings.model) == before:
                raise
            continue
        model.engine.open_heads()
        if folder_state(settings.model) != before:
            continue
        limits = limits_for(model, settings)
        # Inputs are cut at the limit, even if the model itself reads more.
        long = "windows" if limits.long_inputs == "windows" else "truncate"
        model.info = model.info.model_copy(update={"max_tokens": limits.tokens, "long": long})
        if settings.index is not None:
            _prepare_for_index(model)
        return Loaded(model, limits, before)
    raise TercetError(f"{settings.model}: changed whenever it was read; try again later.")


def _prepare_for_index(model: Model) -> None:
    """Do what takes longest when an index is opened, so that replaced workers start soon.

    Lance itself may not be imported before a fork.
    """
    import pyarrow.dataset  # noqa: F401

    assert model.tokenizer.fingerprint  # kept by the tokenizer


def folder_state(source: str | None) -> FolderState:
    """Name, number, size and time of the files of a model folder; None if it has none here."""
    try:
        found = find_local_folder(source)
        if found is None:
            return None
        folder = found[0]
        return tuple(sorted(_file_state(file, folder) for file in folder.rglob("*")))
    except (TercetError, OSError):
        return None


def _file_state(file: Path, folder: Path) -> tuple[str, int, int, int]:
    known = file.stat()
    return str(file.relative_to(folder)), known.st_ino, known.st_size, known.st_mtime_ns


def limits_for(model: Model, settings: Settings) -> Limits:
    """The limits of the settings, with defaults by the model."""
    model_tokens = model.info.max_tokens
    tokens = settings.max_tokens or model_tokens
    limits = Limits(
        inputs=settings.max_inputs,
        tokens=tokens,
        body=settings.max_body,
        long_inputs=settings.long_inputs or model.info.long,
        queue_inputs=settings.queue_inputs,
        queue_tokens=settings.queue_tokens,
        batch_tokens=settings.batch_tokens or _usual_batch(model, settings, tokens=tokens),
        wait=settings.max_wait,
        timeout=settings.timeout,
    )
    limits.check(model_tokens=model_tokens)
    return limits


def _usual_batch(model: Model, settings: Settings, *, tokens: int) -> int:
    """Tokens of a batch: as many as the device takes at once and the queue holds."""
    # With one thread, a batch of an ONNX folder has fewer tokens than some models read.
    return max(min(model.engine.batch_tokens, settings.queue_tokens), tokens)


def log_not_reloaded(error: Exception) -> None:
    """Log why a model or an index stays as it was; our own sentences hold no text of a client."""
    if isinstance(error, TercetError):
        log("not-reloaded", reason=str(error))
    else:
        log_failure("not-reloaded", error)
