"""Mutations of bulk translation."""

from tests.mutation import Mutation

BULK = (
    Mutation(
        "a chunk of bulk translation has one more line than that of translate",
        "if len(chunks[-1]) >= CHUNK or",
        "if len(chunks[-1]) > CHUNK or",
        "bulk",
    ),
    Mutation(
        "the journal of another input is continued",
        "if _parse(first) != self._head:",
        "if _parse(first) is None:",
        "bulk",
    ),
    Mutation(
        "two bulk jobs may write to one directory",
        "if not try_lock(handle, shared=shared):",
        "if not try_lock(handle, shared=True):",
        "bulk",
    ),
    Mutation(
        "a block without its end of line counts as written",
        'if not line.endswith(b"\\n"):\n        return None\n    try:\n        fields',
        "try:\n        fields",
        "bulk",
    ),
    Mutation(
        "a list of triples is lost when its description is written",
        "if isinstance(value, list) and row.problem is None and self.into != FIELD:",
        "if isinstance(value, list) and row.problem is not None and self.into != FIELD:",
        "bulk_records",
    ),
    Mutation(
        "bulk translation reads records without the form of their corpus",
        "return RecordSources(record_form(config.data.train)) if config.task.input_kind().record else TextSources()",
        "return TextSources()",
        "bulk_records",
    ),
)
