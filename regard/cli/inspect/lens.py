"""`regard inspect lens`: what each layer would have said."""

from regard.cli.inspect.output import AsJson, Output, Run, Second, Source, Target, check, joined, show

EXAMPLES = """
\b
Examples:
  regard inspect lens runs/mine "A dog runs."
  regard inspect lens runs/mine "A dog runs." --target "Ein Hund läuft." -o page.html
  regard inspect lens runs/tagging "They book a flight"               from which layer on each tag is settled
"""


def lens(
    run: Run,
    source: Source,
    second: Second = None,
    target: Target = None,
    output: Output = None,
    as_json: AsJson = False,
) -> None:
    """Show what each layer would have said: the rank and probability of each word (or label), and the layer's own.

    Of a model that writes, the layers of the decoder; of one that only reads, those of the encoder.
    """
    from regard import inspection
    from regard.inspection.opening import opened

    check(output)
    show(inspection.lens(opened(run).trace(joined(source, second), target)), output, as_json, run)
