"""Training settings."""

from typing import Annotated, Literal

from pydantic import Field

from regard.config.choices import TRACKERS
from regard.config.section import Section


class Optimizer(Section):
    """The optimizer."""

    kind: Literal["adamw", "muon", "adam", "sgd"] = "adamw"
    """AdamW (Loshchilov and Hutter, 2019) needs the least tuning; Muon (Jordan et al., 2024) needs far fewer steps."""
    learning_rate: float | None = Field(default=None, gt=0.0, le=100.0)
    """Peak rate; by default 0.002 (Muon: 0.006) up to width 256, then divided by √(width / 256); for SGD 0.5."""
    beta1: float = Field(default=0.9, ge=0.0, lt=1.0)
    """Adam: β₁, decay of the mean."""
    beta2: float = Field(default=0.98, ge=0.0, lt=1.0)
    """Adam: β₂, decay of the squared mean; 0.98, as in the Transformer paper, forgets bad early gradients soon."""
    weight_decay: float = Field(default=0.0, ge=0.0)
    """Weight decay (AdamW: decoupled from the gradient)."""
    momentum: float = Field(default=0.0, ge=0.0, lt=1.0)
    """SGD: momentum."""


class Schedule(Section):
    """The learning rate schedule."""

    kind: Literal["inverse-sqrt", "cosine", "plateau", "constant"] = "inverse-sqrt"
    """`inverse-sqrt` needs no fixed end; `cosine` falls to zero at the last step; `plateau` waits for validation."""
    warmup: int | None = Field(default=None, ge=0)
    """Steps of linear rise from zero; by default 400, which suits small corpora, or a fifth of all steps if less."""
    factor: float = Field(default=0.5, gt=0.0, lt=1.0)
    """`plateau`: the rate is multiplied by this after `patience` validations without improvement."""
    patience: int = Field(default=2, ge=1)
    """`plateau`: validations without improvement before the rate falls."""


class ScheduledSampling(Section):
    """Feed the decoder its own words more and more often (Bengio et al., 2015)."""

    kind: Literal["none", "linear", "exponential", "inverse-sigmoid"] = "none"
    """Shape of the decay of the share of true words from 1."""
    speed: float = Field(default=1.0, gt=0.0)
    """Speed of the decay; 1 reaches the floor (or about half way to it) at the last step."""
    floor: float = Field(default=0.5, ge=0.0, le=1.0)
    """Smallest share of true words."""


class Corruption(Section):
    """Noise in the decoder's input words, so that it learns to recover. No input reveals the word to predict."""

    replace: float = Field(default=0.0, ge=0.0, lt=1.0)
    """Probability of replacing a word by a random one."""
    swap: float = Field(default=0.0, ge=0.0, lt=1.0)
    """Probability of swapping a word with the next one."""
    delete: float = Field(default=0.0, ge=0.0, lt=1.0)
    """Probability of dropping a word; those after it move up by one."""


class Exposure(Section):
    """Remedies for exposure bias: the decoder reads true words in training but its own in use. They can be combined."""

    scheduled_sampling: ScheduledSampling = ScheduledSampling()
    """The model's own words instead of true ones; two passes for parallel decoders (Mihaylova and Martins, 2019)."""
    word_dropout: float = Field(default=0.0, ge=0.0, lt=1.0)
    """Probability of replacing a decoder input word by `<unk>` (Bowman et al., 2016)."""
    corruption: Corruption = Corruption()
    """Noise in decoder input words."""


class EarlyStopping(Section):
    """When to stop early."""

    metric: Literal[
        "loss",
        "bleu",
        "chrf",
        "meteor",
        "cider",
        "rouge1",
        "rouge2",
        "rougeL",
        "exact",
        "wer",
        "cer",
        "f1",
        "true",
        "accuracy",
        "macro_f1",
        "span_f1",
        "pearson",
        "spearman",
        "squared_error",
    ] = "loss"
    """The metric for stopping and for the best checkpoint: the loss, or a metric of the task."""
    patience: int = Field(default=6, ge=1)
    """Validations without improvement before training stops."""


Tune = Literal["all", "fresh", "gradual"]


class Training(Section):
    """Training settings of a run."""

    steps: int = Field(default=6000, ge=1)
    """Largest number of updates."""
    batch_tokens: int = Field(default=2048, ge=1)
    """Padded tokens per batch on its longer side, of all processes together; small batches suit small corpora."""
    accumulate: int = Field(default=1, ge=1)
    """Batches whose gradients are accumulated for one update."""
    optimizer: Optimizer = Optimizer()
    """The optimizer."""
    schedule: Schedule = Schedule()
    """The learning rate schedule."""
    label_smoothing: float = Field(default=0.1, ge=0.0, lt=1.0)
    """Label smoothing (Szegedy et al., 2016); use 0 if there is only one right answer."""
    frozen: list[str] | None = None
    """Parameters that are not trained, by name or pattern, such as `decoder.*`."""
    clip: float = Field(default=1.0, ge=0.0)
    """Largest gradient norm; 0 never clips."""
    coverage: float = Field(default=0.0, ge=0.0, le=100.0)
    """With `model.copying`: penalty for pointing at the same source position again (See et al., 2017)."""
    exposure: Exposure = Exposure()
    """Remedies for exposure bias."""
    ema: float = Field(default=0.0, ge=0.0, lt=1.0)
    """Decay of an exponential moving average of the weights, used for validation and the result; 0 is off."""
    average: int = Field(default=0, ge=0)
    """The result is the average of this many last checkpoints; 0 takes the best checkpoint."""
    early_stopping: EarlyStopping = EarlyStopping()
    """When to stop early."""
    validate_every: int = Field(default=500, ge=1)
    """Steps between validations."""
    validation_sample: int = Field(default=200, ge=1)
    """Validation examples that are decoded (greedily) each time, spread evenly over all; the loss covers all."""
    checkpoint_every: int = Field(default=500, ge=1)
    """Steps between checkpoints."""
    keep_last: int = Field(default=2, ge=1)
    """Newest checkpoints kept (at least `average`)."""
    keep_best: int = Field(default=1, ge=1)
    """Best checkpoints kept in addition."""
    log_every: int = Field(default=20, ge=1)
    """Steps between lines in metrics.jsonl."""
    tune: Tune = "all"
    """With `model.start_from`: train all weights, only new ones, or unfreeze the others layer by layer from the top."""
    max_bad_steps: int = Field(default=20, ge=1)
    """Consecutive steps with a loss or gradient that is not finite, which are skipped, before the run stops."""
    precision: Literal["auto", "float32", "bfloat16", "float16"] = "auto"
    """`auto`: bfloat16 on GPUs that have it, otherwise float32."""
    parallel: Literal["ddp", "fsdp"] = "ddp"
    """With torchrun: `ddp` copies the model to every process; `fsdp` divides it and its optimizer state among them."""
    device: str = "auto"
    """`auto` takes CUDA, then Apple's GPU, then the CPU."""
    seed: int = Field(default=1, ge=0)
    """Seed of all random numbers."""
    tensorboard: bool = False
    """Also write TensorBoard events into the run; the same as `tensorboard` in `trackers`."""
    trackers: list[Annotated[str, TRACKERS]] = Field(default_factory=list)
    """Experiment trackers that receive every measurement: `tensorboard`, `wandb`, `mlflow`, or your own."""

    @property
    def plugins(self) -> list[str]:
        """The extension modules of the trackers."""
        return sorted({plugin for name in self.trackers if (plugin := TRACKERS.plugin_of(name))})
