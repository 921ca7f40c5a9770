"""Metrics for Prometheus: queue, batches, latency, tokens, refusals."""

from __future__ import annotations

import os
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector

from tercet.serve.workers import SHARED_FOLDER

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
SHARES = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)


class Metrics:
    """The metrics of one server."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self.requests = self._make(
            Counter, "tercet_requests", "Requests answered.", labelnames=("route", "status")
        )
        self.refusals = self._make(
            Counter, "tercet_refusals", "Requests refused.", labelnames=("status",)
        )
        self.seconds = self._make(
            Histogram,
            "tercet_request_seconds",
            "From a request's first byte to its answer's last.",
            labelnames=("route",),
            buckets=SECONDS,
        )
        self.queue_seconds = self._make(
            Histogram, "tercet_queue_seconds", "From queued to encoded.", buckets=SECONDS
        )
        self.queue_inputs = self._make(
            Gauge,
            "tercet_queue_inputs",
            "Inputs that are queued or being encoded.",
            multiprocess_mode="livesum",
        )
        self.queue_tokens = self._make(
            Gauge,
            "tercet_queue_tokens",
            "Tokens that are queued or being encoded.",
            multiprocess_mode="livesum",
        )
        self.inputs = self._make(Counter, "tercet_inputs", "Inputs encoded.")
        self.tokens = self._make(Counter, "tercet_tokens", "Tokens encoded.")
        self.truncated = self._make(Counter, "tercet_truncated_inputs", "Inputs that were cut.")
        self.windowed = self._make(
            Counter, "tercet_windowed_inputs", "Inputs that were read in windows."
        )
        self.fill = self._make(
            Histogram, "tercet_batch_fill", "Share of the token budget used.", buckets=SHARES
        )
        self.batch_seconds = self._make(
            Histogram, "tercet_batch_seconds", "Time to encode a batch.", buckets=SECONDS
        )
        self.failures = self._make(Counter, "tercet_batch_failures", "Batches that failed.")

    def _make(self, kind: type[Any], name: str, help_text: str, **options: Any) -> Any:
        return kind(name, help_text, registry=self._registry, **options)

    def text(self) -> bytes:
        """All metrics in the format of Prometheus, summed over workers."""
        if SHARED_FOLDER not in os.environ:
            return generate_latest(self._registry)
        registry = CollectorRegistry()
        MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
        return generate_latest(registry)
