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

    Beside it stands each word's gain: how much likelier it is with its source than with a blank one. Words below zero
    are flagged, as perhaps invented.
    """
    from regard import inspection
    from regard.inspection.opening import opened, translating

    check(output)
    translator = translating(opened(run), "Contributions are told")
    show(inspection.contributions(translator.trace(source, target)), output, as_json, run)
