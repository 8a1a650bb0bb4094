"""Mutations of records, copying, local attention, ROUGE, length control, sounds and tagged files."""

from tests.mutation import Mutation

RECORDS = (
    Mutation(
        "equal source tokens are not added up when copied",
        "self.log_weights.masked_fill(~matching, NOTHING).logsumexp(-1)",
        "self.log_weights.masked_fill(~matching, NOTHING).amax(-1)",
        "copying",
    ),
    Mutation(
        "the gate's gradient ignores generation's share", "(self.opening - self.share)", "self.opening", "copying"
    ),
    Mutation(
        "rows of a beam copy each other's sources",
        "(part.index_select(0, rows.owners) for part in source[1:])",
        "(part.index_select(0, rows.owners.flip(0)) for part in source[1:])",
        "copying",
    ),
    Mutation(
        "the pointer follows any pair",
        "both = follows & (first == before",
        "both = follows | (first == before",
        "copying",
    ),
    Mutation(
        "steps forget the last token but one", '"written": tokens}', '"written": state.past["written"]}', "copying"
    ),
    Mutation(
        "padding can be copied",
        "scores.masked_fill(~source.mask[:, None], NOTHING).log_softmax(-1)",
        "scores.log_softmax(-1)",
        "copying",
    ),
    Mutation(
        "blocks have too narrow a window", "(distance.abs() <= window)", "(distance.abs() < window)", "local_attention"
    ),
    Mutation(
        "watched weights have too wide a window",
        "near = distance <= window",
        "near = distance <= window + 1",
        "local_attention",
    ),
    Mutation("parts count the separators of earlier fields", "parts - before, places", "parts, places", "records"),
    Mutation(
        "markers attend only to their own field",
        "== field[:, None]) | marker[:, :, None] | marker[:, None]",
        "== field[:, None]) | marker[:, None]",
        "records",
    ),
    Mutation("values are replaced within words", r"{pattern}(?!\w)(?:{end})?", r"{pattern}(?:{end})?", "mentions"),
    Mutation(
        "short mentions overlap long ones",
        "if all(mention.end <= other.start or other.end <= mention.start for other in kept):",
        "if True:",
        "mentions",
    ),
    Mutation(
        "subjects of validation are in training", "return fields[0][0] if len(", "return source if len(", "records"
    ),
    Mutation(
        "ROUGE takes the first reference",
        "max(self._compare(words, rouge_words(reference)) for reference in several)",
        "self._compare(words, rouge_words(several[0]))",
        "rouge",
    ),
    Mutation(
        "outputs may be a word too short",
        "missing = self.least - state.number",
        "missing = self.least - 1 - state.number",
        "summarising",
    ),
    Mutation(
        "a word may go on for ever",
        "self._next_word if state.length >= LONGEST_WORD else self._no_end",
        "self._no_end",
        "summarising",
    ),
    Mutation(
        "there may be no room for the missing words",
        "missing * self._cost):",
        "missing * self._cost - 2):",
        "summarising",
    ),
    Mutation(
        "validation takes the first examples",
        "sources[number * len(sources) // count]",
        "sources[number]",
        "records",
    ),
    Mutation("a sound that is cut short is read", "LARGEST_GAP = 0.01", "LARGEST_GAP = 1.0", "sounds"),
    Mutation("two sentences without an empty line are one", "if columns[0] != str(expected):", "if False:", "spans"),
    Mutation(
        "the end of a long source is not reported",
        "len(row) > most or len(source) > limit",
        "len(source) > limit",
        "summarising",
    ),
    Mutation(
        "a folder is named in which other files have the names of a manifest",
        "if all(name is not None and folder / name == file for name, file in zip(found, absolute, strict=True)):",
        "if all(name is not None for name in found):",
        "new_manifests",
    ),
    Mutation(
        "a rare sample rate is taken for that of a manifest",
        "commonest = rates.most_common(1)[0][0]",
        "commonest = rates.most_common()[-1][0]",
        "new_manifests",
    ),
    Mutation(
        "the weight of CTC is set for models without its layer",
        "weight = (CTC_IN_SEARCH if decoding.ctc is None else decoding.ctc) if task.has_ctc else None",
        "weight = CTC_IN_SEARCH if decoding.ctc is None else decoding.ctc",
        "speech",
    ),
)
"""Of records, copying, local attention, ROUGE, length control, sounds and tagged files."""
