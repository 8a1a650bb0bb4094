"""Text as an output: a decoder writes it token by token.

Axes: B batch, S source positions, T target positions, E output width.
"""

import math
import shlex
from collections.abc import Sequence

from regard.config.data import Cleaning
from regard.config.run import RunConfig
from regard.data.batches import SOURCE_FRAME
from regard.data.corpus import Pair
from regard.foundation.errors import UsageError
from regard.metrics.scoring import headline_metrics, score_text
from regard.models import Model
from regard.tasks.judgement import Judgement, Sample, Usage
from regard.tasks.outputs.decoded import DecodedOutput
from regard.tasks.outputs.output import Rows
from regard.tasks.trace import Side, Trace, check_cost
from regard.text.specials import UNK

ANSWER_METRICS = ("exact", "f1")
"""Scores of the answer to a question about a text."""


class TextOutput(DecodedOutput):
    """A text that answers a source, judged by what the model writes for a sample of sources."""

    writes_text = True
    source_frame = SOURCE_FRAME

    @classmethod
    def cleaning(cls, config: RunConfig) -> Cleaning:
        """Where a source is several texts, its length says nothing about that of the target."""
        given = config.data.cleaning
        return given.model_copy(update={"max_ratio": math.inf}) if config.data.train.texts > 1 else given

    def targets(self, pairs: Sequence[Pair]) -> Rows:
        """The tokens of the targets."""
        return self.tokenizer.encode_batch([pair.target for pair in pairs])

    def trace(self, model: Model, source: str, target: str | None = None) -> Trace:
        """Run the model on a source and its own output, or another one."""
        view = self.input.view(model, source)
        check_cost(model, len(view.side))
        if target is None:
            best = self.generator(model).hypotheses([source])[0]
            tokens = list(best[0].tokens) if best else []
        else:
            tokens = self.tokenizer.encode_batch([target])[0]
            self.check_target(target, tokens)
        return self.trace_tokens(model, source, tokens)

    def check_target(self, target: str, tokens: Sequence[int]) -> None:
        """Refuse a target with an unknown word, or one that needs more positions than the model has learned."""
        if UNK in tokens:
            word = Side.of(self.tokenizer, list(tokens)).words[list(tokens).index(UNK)] + 1
            raise UsageError(
                f'The target "{target[:80]}" has a word that this model cannot say (word {word}): use words of its '
                "vocabulary."
            )
        positions = self.config.model.learned_positions
        if positions is not None and len(tokens) >= positions:
            raise UsageError(
                f"The target has {len(tokens):,} tokens, but this model has learned {positions} positions: shorten it."
            )

    # Judging

    def lines(self, model: Model, sources: Sequence[str], *, thorough: bool = True) -> list[str]:
        """The best texts, by the configured beam or greedily."""
        return self.generator(model).translate(list(sources), beam=None if thorough else 1)

    def metrics(self, references: Sequence[str]) -> tuple[str, ...]:
        """Return the scores that suit the references; the metric of early stopping is always among them."""
        suited = ANSWER_METRICS if self.config.data.train.texts > 1 else headline_metrics(references)
        metric = self.config.training.early_stopping.metric
        return suited if metric in (*suited, "loss") else (*suited, metric)

    def grade(self, lines: Sequence[str], pairs: Sequence[Pair]) -> Judgement:
        """Compare texts with the references."""
        samples = [
            Sample(source=pair.source, reference=pair.target, output=output)
            for pair, output in zip(pairs, lines, strict=True)
        ]
        references = [pair.target for pair in pairs]
        scores = score_text(lines, references, self.metrics(references))
        return Judgement(scores=scores, samples=samples)

    def usage(self, run: str, example: Pair) -> Usage:
        """Translate the example."""
        return Usage(
            shell=f"echo {shlex.quote(example.source)} | regard translate {shlex.quote(run)}",
            python=f"import regard\n\nmodel = regard.load({run!r})\nmodel.translate({example.source!r})",
        )

    def next_command(self, run: str) -> str:
        """Translate a file."""
        return f"regard translate {run} < in.txt > out.txt"
