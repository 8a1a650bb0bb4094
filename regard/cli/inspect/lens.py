"""`regard inspect lens`: what each decoder layer would have said."""

from regard.cli.inspect.output import AsJson, Output, Run, Source, Target, check, show

EXAMPLES = """
\b
Examples:
  regard inspect lens runs/mine "A dog runs."
  regard inspect lens runs/mine "A dog runs." --target "Ein Hund läuft." -o page.html
"""


def lens(run: Run, source: Source, target: Target = None, output: Output = None, as_json: AsJson = False) -> None:
    """Show what each decoder layer would have said: the rank and probability of each word, and the layer's own."""
    from regard import inspection
    from regard.inspection.opening import opened

    check(output)
    show(inspection.lens(opened(run).trace(source, target)), output, as_json)
