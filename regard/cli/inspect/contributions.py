"""`regard inspect contributions`: source against prefix, token by token."""

from regard.cli.inspect.output import AsJson, Output, Run, Source, Target, check, show

EXAMPLES = """
\b
Examples:
  regard inspect contributions runs/mine "A dog runs." -o page.html
  regard inspect contributions runs/mine "A dog runs." --target "Ein Hund schläft."
"""


def contributions(
    run: Run, source: Source, target: Target = None, output: Output = None, as_json: AsJson = False
) -> None:
    """Show how much of each word came from the source, and how much from the words before; for Transformer decoders.

    Words with less of the source than is usual in the run's own held-out pairs are flagged.
    """
    import regard
    from regard import inspection
    from regard.data.prepare import is_prepared, prepare
    from regard.evaluation.display import bar
    from regard.inspection.shares import PAIRS, usual_shares

    check(output)
    translator = regard.load(run)
    found = inspection.contributions(translator.trace(source, target))
    if is_prepared(run):
        pairs = prepare(translator.config, run).validation_pairs[:PAIRS]
        with bar() as progress:
            usual = usual_shares(translator, [(pair.source, pair.target) for pair in pairs], progress)
        found = inspection.contributions(found.trace, usual)
    show(found, output, as_json)
