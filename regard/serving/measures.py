"""What the service counts, for Prometheus."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)


class Measures:
    """The metrics of one server."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.requests = Counter(
            "regard_requests", "Requests by endpoint and status.", ["endpoint", "status"], registry=self.registry
        )
        self.duration = Histogram(
            "regard_request_seconds", "Duration of requests.", ["endpoint"], buckets=SECONDS, registry=self.registry
        )
        self.queue_seconds = Histogram(
            "regard_queue_seconds", "Time that sentences wait for a worker.", buckets=SECONDS, registry=self.registry
        )
        self.queue_depth = Gauge("regard_queue_depth", "Sentences that wait or run.", registry=self.registry)
        self.batch_size = Histogram(
            "regard_batch_size", "Sentences in a batch.", buckets=(1, 2, 4, 8, 16, 32), registry=self.registry
        )
        self.characters = Counter("regard_characters", "Characters of accepted texts.", registry=self.registry)
        self.tokens = Counter(
            "regard_tokens",
            "Source tokens of translated sentences, except for those that need the native engine.",
            registry=self.registry,
        )
        self.cached = Counter("regard_cached", "Sentences answered from the cache.", registry=self.registry)
        self.rejected = Counter("regard_rejected", "Rejected requests by reason.", ["reason"], registry=self.registry)
        self.restarts = Counter("regard_worker_restarts", "Workers that died.", registry=self.registry)
        self.models = Gauge("regard_models_loaded", "Models in the memory of workers.", registry=self.registry)
        self.worker_memory = Gauge("regard_worker_memory_bytes", "Resident memory of workers.", registry=self.registry)

    def text(self) -> bytes:
        """Return all metrics in the text format of Prometheus."""
        return generate_latest(self.registry)
