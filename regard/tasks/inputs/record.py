"""Records as input: objects with fields, rows of a table, or triples.

A raw source is the JSON text of a record. Its tokens have field markers (`regard.text.records`), so that everything
that reads tokens reads records too.
"""

from collections.abc import Sequence

from regard.config.run import RunConfig
from regard.config.task import DataToText
from regard.data.corpus import Pair
from regard.foundation.errors import RegardError
from regard.search.hypothesis import Hypothesis
from regard.search.options import Search
from regard.tasks.inputs.input import Rows
from regard.tasks.inputs.text import TextInput
from regard.text.mentions import find_missing
from regard.text.records import RecordForm, linearise, parse_record, record_form, record_problem
from regard.text.sentences import Piece
from regard.text.templates import Template


class RecordInput(TextInput):
    """A record as one row of tokens: `<s>` begins every field, and `<sep>` stands between its parts."""

    _longer = 0
    """How many records so far were longer than any in training."""

    @classmethod
    def problem(cls, source: str) -> str | None:
        """Return what is wrong with a record."""
        return record_problem(source)

    @classmethod
    def group(cls, source: str) -> str:
        """Return the first subject of triples, so that models are chosen by subjects that training does not have."""
        fields = parse_record(source)
        return fields[0][0] if len(fields[0]) == 3 else source

    @classmethod
    def texts_of(cls, pair: Pair, config: RunConfig) -> Pair:
        """Return the text of a record and its target, with placeholders if the task delexicalises."""
        fields = parse_record(pair.source, record_form(config.data.train))
        if not _delexicalises(config):
            return Pair(linearise(fields), pair.target)
        template = Template.of(fields)
        return Pair(linearise(template.fields), template.insert_placeholders(pair.target))

    @property
    def form(self) -> RecordForm:
        """Where the record is in a JSON object of the corpus."""
        return record_form(self.config.data.train)

    def target_texts(self, pairs: Sequence[Pair]) -> list[str]:
        """Return the target texts as the model learns them: with placeholders if the task delexicalises."""
        if not _delexicalises(self.config):
            return super().target_texts(pairs)
        return [self._template(pair.source).insert_placeholders(pair.target) for pair in pairs]

    def finish(self, source: str, text: str) -> str:
        """Return an output with values instead of placeholders."""
        return self._template(source).insert_values(text) if _delexicalises(self.config) else text

    @property
    def reorders(self) -> bool:
        """With `decoding.complete`."""
        return self.config.decoding.complete

    def reorder(self, source: str, hypotheses: list[Hypothesis]) -> list[Hypothesis]:
        """Return hypotheses that leave out fewer values first, if `decoding.complete`; else in their order."""
        if not self.reorders:
            return hypotheses
        return sorted(hypotheses, key=lambda hypothesis: self.count_missing(source, hypothesis.text))

    def count_missing(self, source: str, text: str) -> int:
        """Return how many values of a record a text does not mention."""
        return len(find_missing(text, list(dict.fromkeys(self._template(source).values.values()))))

    def split(self, sources: Sequence[str], search: Search) -> tuple[list[list[Piece]], Rows]:
        """Return each record as one piece, since a part of a record describes something else."""
        return [[Piece(source, "")] for source in sources], self.rows(sources)

    def shorten(self, sources: Sequence[str]) -> tuple[list[str], int]:
        """Return records unchanged: they are read whole or refused."""
        return list(sources), 0

    def check_lengths(self, rows: Rows) -> None:
        """Raise an error for records that do not fit a batch, and count those that are longer than any in training."""
        super().check_lengths(rows)
        for number, ids in enumerate(rows, start=1):
            if len(ids) > self.longest_source:
                name = "The record" if len(rows) == 1 else f"Record {number:,}"
                raise RegardError(
                    f"{name} has {len(ids):,} tokens, but this run reads at most {self.longest_source:,} at once "
                    "(decoding.batch_tokens). Leave out fields, or make several records of it."
                )
        self._longer += sum(len(ids) > self.trained_length for ids in rows)

    def remarks(self) -> list[str]:
        """Return how many records were longer than any in training."""
        if not self._longer:
            return []
        records = "1 record has" if self._longer == 1 else f"{self._longer:,} records have"
        return [
            f"{records} more than {self.trained_length:,} tokens, the most in training. All are read, but long "
            "records may be described badly. Leave out fields, or make several records of each."
        ]

    @property
    def aligns(self) -> bool:
        """Attention to fields is not a word alignment."""
        return False

    def _template(self, source: str) -> Template:
        return Template.of(parse_record(source, self.form))


def _delexicalises(config: RunConfig) -> bool:
    return isinstance(config.task, DataToText) and config.task.delexicalise
