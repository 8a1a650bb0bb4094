"""How a model learns."""

from typing import Annotated, Literal

from pydantic import Field

from regard.config.choices import TRACKERS
from regard.config.section import Section


class Optimizer(Section):
    """What turns gradients into steps."""

    kind: Literal["adamw", "muon", "adam", "sgd"] = "adamw"
    """AdamW (Loshchilov and Hutter, 2019) needs the least care; Muon (Jordan et al., 2024) needs far fewer steps."""
    learning_rate: float | None = Field(default=None, gt=0.0, le=100.0)
    """Peak rate; by default 0.002 (Muon: 0.006) up to width 256, then falling with its square root; for SGD 0.5."""
    beta1: float = Field(default=0.9, ge=0.0, lt=1.0)
    """Adam: memory of the mean."""
    beta2: float = Field(default=0.98, ge=0.0, lt=1.0)
    """Adam: memory of the square; 0.98 is the Transformer paper's and forgets early bad gradients soon."""
    weight_decay: float = Field(default=0.0, ge=0.0)
    """Pull towards zero (AdamW: apart from the gradient)."""
    momentum: float = Field(default=0.0, ge=0.0, lt=1.0)
    """SGD: share of the last step carried on."""


class Schedule(Section):
    """How the learning rate moves."""

    kind: Literal["inverse-sqrt", "cosine", "plateau", "constant"] = "inverse-sqrt"
    """`inverse-sqrt` needs no end in sight; `cosine` falls to zero at the last step; `plateau` waits for validation."""
    warmup: int | None = Field(default=None, ge=0)
    """Steps of linear rise from zero; by default 400, which suits small corpora, or a fifth of a shorter course."""
    factor: float = Field(default=0.5, gt=0.0, lt=1.0)
    """`plateau`: the rate is multiplied by this when validation has not improved for `patience` times."""
    patience: int = Field(default=2, ge=1)
    """`plateau`: validations without improvement before the rate falls."""


class ScheduledSampling(Section):
    """Feed the decoder its own words ever more often (Bengio et al., 2015)."""

    kind: Literal["none", "linear", "exponential", "inverse-sigmoid"] = "none"
    """How the share of true words falls from 1."""
    speed: float = Field(default=1.0, gt=0.0)
    """Larger falls faster; 1 reaches the floor (or about a half of its way) at the last step."""
    floor: float = Field(default=0.5, ge=0.0, le=1.0)
    """The share of true words never falls below this."""


class Corruption(Section):
    """Damage to the decoder's input words, so that it learns to recover. No input ever shows the word it leads to."""

    replace: float = Field(default=0.0, ge=0.0, lt=1.0)
    """Probability of a random word instead."""
    swap: float = Field(default=0.0, ge=0.0, lt=1.0)
    """Probability of changing places with the next word."""
    delete: float = Field(default=0.0, ge=0.0, lt=1.0)
    """Probability of dropping the word: those after it move up one place."""


class Exposure(Section):
    """Cures for exposure bias: in training the decoder reads true words, in use its own. They compose."""

    scheduled_sampling: ScheduledSampling = ScheduledSampling()
    """Words of its own instead of true ones; two-pass where the decoder is parallel (Mihaylova and Martins, 2019)."""
    word_dropout: float = Field(default=0.0, ge=0.0, lt=1.0)
    """Probability of hiding a decoder input word behind `<unk>` (Bowman et al., 2016)."""
    corruption: Corruption = Corruption()
    """Random damage to decoder input words."""


class EarlyStopping(Section):
    """When to stop before the last step."""

    metric: Literal[
        "loss",
        "bleu",
        "chrf",
        "meteor",
        "cider",
        "exact",
        "wer",
        "cer",
        "f1",
        "true",
        "accuracy",
        "macro_f1",
        "pearson",
        "spearman",
        "squared_error",
    ] = "loss"
    """What improvement means, for stopping and for the best checkpoint: the loss, or a score of the run's shape."""
    patience: int = Field(default=6, ge=1)
    """Validations without improvement before training stops."""


Tune = Literal["all", "fresh", "gradual"]


class Training(Section):
    """The course of a training run."""

    steps: int = Field(default=6000, ge=1)
    """Updates at most."""
    batch_tokens: int = Field(default=2048, ge=1)
    """Padded tokens a batch on its longer side; small batches mean many updates, which small corpora like."""
    accumulate: int = Field(default=1, ge=1)
    """Batches whose gradients are added up for one update."""
    optimizer: Optimizer = Optimizer()
    """What turns gradients into steps."""
    schedule: Schedule = Schedule()
    """How the learning rate moves."""
    label_smoothing: float = Field(default=0.1, ge=0.0, lt=1.0)
    """Probability spread over all words (Szegedy et al., 2016); use 0 where there is one right answer."""
    frozen: list[str] | None = None
    """Parameters that stay as they are, by their names or patterns of them, such as `decoder.*`."""
    clip: float = Field(default=1.0, ge=0.0)
    """Largest gradient norm; 0 never clips."""
    exposure: Exposure = Exposure()
    """Cures for exposure bias."""
    ema: float = Field(default=0.0, ge=0.0, lt=1.0)
    """Decay of an exponential moving average of the weights, used for validation and the result; 0 is off."""
    average: int = Field(default=0, ge=0)
    """The result is the average of this many last checkpoints; 0 takes the best checkpoint."""
    early_stopping: EarlyStopping = EarlyStopping()
    """When to stop before the last step."""
    validate_every: int = Field(default=500, ge=1)
    """Steps between validations."""
    validation_sample: int = Field(default=200, ge=1)
    """Validation sentences that are really decoded (greedily) each time; the loss covers all."""
    checkpoint_every: int = Field(default=500, ge=1)
    """Steps between checkpoints."""
    keep_last: int = Field(default=2, ge=1)
    """Newest checkpoints kept (at least `average`)."""
    keep_best: int = Field(default=1, ge=1)
    """Best checkpoints kept beside them."""
    log_every: int = Field(default=20, ge=1)
    """Steps between lines in metrics.jsonl."""
    tune: Tune = "all"
    """With `model.start_from`: train all weights, only fresh ones, or thaw the others layer by layer from the top."""
    max_bad_steps: int = Field(default=20, ge=1)
    """Steps in a row with a loss or gradient that is not finite, each skipped, before the run stops."""
    precision: Literal["auto", "float32", "bfloat16", "float16"] = "auto"
    """`auto`: bfloat16 on GPUs that have it, otherwise float32."""
    device: str = "auto"
    """`auto` takes CUDA, then Apple's GPU, then the CPU."""
    seed: int = Field(default=1, ge=0)
    """Everything random follows from it."""
    tensorboard: bool = False
    """Also write TensorBoard events into the run: the same as `tensorboard` among the trackers."""
    trackers: list[Annotated[str, TRACKERS]] = Field(default_factory=list)
    """Experiment trackers that receive every measurement: `tensorboard`, `wandb`, `mlflow`, or your own."""

    @property
    def plugins(self) -> list[str]:
        """The extension modules of the trackers."""
        return sorted({plugin for name in self.trackers if (plugin := TRACKERS.plugin_of(name))})
