"""`regard inspect attention`: where the model looked."""

from regard.cli.inspect.output import AsJson, Output, Run, Source, Target, check, show

EXAMPLES = """
\b
Examples:
  regard inspect attention runs/mine "A dog runs." -o page.html
  regard inspect attention runs/mine "A dog runs." --target "Ein Hund läuft." -o picture.png
"""


def attention(run: Run, source: Source, target: Target = None, output: Output = None, as_json: AsJson = False) -> None:
    """Show where each head of each layer looked while a source was read and a target written."""
    import regard
    from regard import inspection

    check(output)
    show(inspection.attention(regard.load(run).trace(source, target)), output, as_json)
