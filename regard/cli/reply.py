"""`regard reply`: suggested replies to messages, from conversations to suggestions."""

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from regard.cli.help import PlainGroup, grouped

if TYPE_CHECKING:
    from regard.reply.suggester import Suggestions

app = typer.Typer(
    cls=PlainGroup,
    help="Suggest three short replies to a message, or none.",
    no_args_is_help=True,
    rich_markup_mode=None,
    epilog="Example: regard reply build conversations.jsonl --run runs/reply",
)

Directory = Annotated[Path, typer.Argument(help="Directory that `regard reply build` has made.", metavar="RUN")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]

BUILD_EXAMPLES = """
\b
Examples:
  regard reply build conversations.jsonl --run runs/reply
  regard reply build mail.mbox --run runs/reply --least 3 --model transformer
"""

SUGGEST_EXAMPLES = """
\b
Examples:
  regard reply suggest runs/reply "Are you coming tonight?"
  regard reply suggest runs/reply < message.eml
  regard reply suggest runs/reply "Shall we meet at noon?" --json --explain
"""


@app.command(cls=grouped({}), epilog=BUILD_EXAMPLES)
def build(
    conversations: Annotated[
        Path,
        typer.Argument(help="A .jsonl, table or .mbox file, or a folder of .eml files.", metavar="CONVERSATIONS"),
    ],
    run: Annotated[Path, typer.Option("--run", help="Directory to write.", metavar="DIR")] = Path("runs/reply"),
    least: Annotated[
        int, typer.Option("--least", min=1, help="Conversations in which a reply must occur to become a response.")
    ] = 5,
    hold_out: Annotated[
        float, typer.Option("--hold-out", min=0, max=0.9, help="Share of conversations kept for evaluation.")
    ] = 0.1,
    model: Annotated[str, typer.Option("--model", help="Scorer: lstm or transformer.")] = "lstm",
    steps: Annotated[
        int,
        typer.Option("--steps", min=1, help="Training steps of the scorer's first phase; the others take fewer."),
    ] = 2500,
) -> None:
    """Build everything from conversations: the responses, the scorer, and what decides whether to reply.

    An interrupted build continues when the same command is given again.
    """
    from regard.foundation.display import bar
    from regard.reply.building import build as build_bundle
    from regard.reply.members import BuildOptions

    options = BuildOptions(least=least, hold_out=hold_out, model=model, steps=steps)
    with bar() as progress:
        build_bundle(conversations, run, options, report=lambda line: print(line, flush=True), progress=progress)
    print(f"\nBuilt {run}. Next:")
    print(f"  regard reply edit {run}          what may be suggested")
    print(f'  regard reply suggest {run} "Are you coming tonight?"')
    print(f"  regard reply evaluate {run}")


@app.command(cls=grouped({}), epilog=SUGGEST_EXAMPLES)
def suggest(
    run: Directory,
    message: Annotated[
        str | None, typer.Argument(help="The message; by default a text or mail on standard input.", metavar="[TEXT]")
    ] = None,
    rate: Annotated[
        float | None,
        typer.Option("--rate", min=0, max=1, help="Share of messages that get suggestions; 1 always suggests."),
    ] = None,
    as_json: AsJson = False,
    explain: Annotated[
        bool, typer.Option("--explain", help="Show the cleaned message, the candidates and their scores.")
    ] = False,
) -> None:
    """Suggest three replies to a message, or none with the reason."""
    from regard.foundation.errors import UsageError
    from regard.reply.mail import LARGEST, parse_mail
    from regard.reply.suggester import Suggester

    suggester = Suggester.open(run)
    if message is not None:
        found = suggester(message, rate=rate)
    else:
        content = sys.stdin.buffer.read(LARGEST + 1)
        if len(content) > LARGEST:
            raise UsageError(f"The message is larger than {LARGEST // 1_000_000} MB. Give a shorter one.")
        found = suggester.suggest_for_mail(_mail_text(content, parse_mail), rate=rate)
    if as_json:
        print(json.dumps(found.to_json(explain=explain), ensure_ascii=False, indent=2))
    else:
        _print(found, explain=explain)


def _mail_text(content: bytes, parse_mail: Any) -> str:
    """Return the text of a mail, or of plain text without a header."""
    first = content.lstrip().split(b"\n", 1)[0]
    name, colon, _ = first.partition(b":")
    if colon and name and b" " not in name and name.replace(b"-", b"").isalnum():
        mail = parse_mail(content)
        if mail.sender or mail.subject or mail.identifier:
            return str(mail.text)
    return content.decode("utf-8", "replace")


def _print(found: "Suggestions", *, explain: bool) -> None:
    from regard.foundation.display import columns

    if explain:
        print(f"message: {found.message}")
        if found.probability is not None:
            print(f"a short reply is wanted with a probability of {found.probability:.0%}")
        rows = [["score", "log P(r|m)", "log P(r)", "intent", "response"]]
        rows += [
            [f"{one.score:.2f}", f"{one.log_prob:.2f}", f"{one.prior:.2f}", one.response.intent, one.response.text]
            for one in found.candidates
        ]
        if found.candidates:
            print(columns(rows, right=[0, 1, 2]))
        print()
    if found.reason:
        print(f"No suggestions. {found.reason}", file=sys.stderr)
    for text in found.texts:
        print(text)


@app.command(cls=grouped({}), epilog="Example: regard reply evaluate runs/reply --conversations held-out.jsonl")
def evaluate(
    run: Directory,
    conversations: Annotated[
        Path | None,
        typer.Option("--conversations", help="By default those that the build held out.", metavar="FILE"),
    ] = None,
    most: Annotated[int, typer.Option("--most", min=1, help="Messages that get suggestions; all are ranked.")] = 3000,
    as_json: AsJson = False,
) -> None:
    """Measure suggestions on conversations that were not trained on, next to simple baselines."""
    from regard.foundation.display import bar
    from regard.foundation.errors import UsageError
    from regard.reply.evaluation import evaluate as measure
    from regard.reply.suggester import Suggester

    suggester = Suggester.open(run)
    path = conversations or run / "held-out.jsonl"
    if conversations is None and not path.is_file():
        raise UsageError(f"{run} has held out no conversations. Name a file with --conversations.")
    with bar() as progress:
        found = measure(suggester, path, most=most, progress=progress)
    if as_json:
        print(json.dumps(found, ensure_ascii=False, indent=2))
    else:
        _print_evaluation(found)


def _print_evaluation(found: dict[str, Any]) -> None:
    from regard.foundation.display import columns

    print(
        f"{found['exchanges']:,} messages with replies; {found['share_in_responses']:.1%} of the replies are among the "
        f"{found['responses']:,} responses.\n"
    )
    rows = [["ranking real replies", "messages", "MRR", "95 % interval", "P@1", "P@3", "P@10"]]
    for name, facts in found["ranking"].items():
        low, high = facts["interval"]
        shares = [f"{facts[f'p@{k}']:.1%}" for k in (1, 3, 10)]
        rows.append([name, f"{facts['messages']:,}", f"{facts['mrr']:.3f}", f"{low:.3f}–{high:.3f}", *shares])
    print(columns(rows, right=[1, 2, 3, 4, 5, 6]))
    print()
    rows = [["scorer minus …, paired by message", "MRR", "95 % interval", "P@10", "95 % interval"]]
    for name, facts in found["advantage"].items():
        (mrr, low, high), (share, least, most) = facts["mrr"], facts["p@10"]
        rows.append(
            [name, f"{mrr:+.3f}", f"{low:+.3f} to {high:+.3f}", f"{share:+.1%}", f"{least:+.1%} to {most:+.1%}"]
        )
    print(columns(rows, right=[1, 2, 3, 4]))
    print()
    rows = [["suggesting", "coverage", "intent right", "at 1, 2, 3", "use", "duplicates", "right of all", "use of all"]]
    for name, facts in found["suggesting"].items():
        positions = " ".join(f"{facts[f'position_{number}']:.1%}" for number in (1, 2, 3))
        shares = [f"{facts[key]:.1%}" for key in ("coverage", "precision")]
        more = [f"{facts[key]:.1%}" for key in ("use", "duplicates", "precision_of_all", "use_of_all")]
        rows.append([name, *shares, positions, *more])
    print(columns(rows, right=[1, 2, 3, 4, 5, 6, 7]))
    trigger = found["trigger"]
    low, high = trigger["interval"]
    print(
        f"\nThe trigger at a rate of {trigger['rate']:.0%} lets {trigger['coverage_of_known']:.1%} of the messages "
        f"pass whose real reply is a response,\nand {trigger['coverage']:.1%} of {trigger['messages']:,} messages in "
        f"general: {trigger['lift']:.2f} times as many (95 % interval {low:.2f}–{high:.2f})."
    )
    judged = next(iter(found["suggesting"].values()))["judged"]
    print(
        f"\nIntent right, positions, use and duplicates: of {judged:,} messages whose real reply is a response. Use: a "
        "suggestion would\nbe clicked, under a position-based click model. Coverage, right of all, use of all: of all "
        "messages."
    )


@app.command(cls=grouped({}), epilog="Example: EDITOR=nano regard reply edit runs/reply")
def edit(
    run: Directory,
    sensitive: Annotated[
        bool, typer.Option("--sensitive", help="Edit the list of sensitive topics instead of the responses.")
    ] = False,
) -> None:
    """Open the list of responses in your editor, and check it afterwards."""
    import os
    import shlex
    import subprocess

    from regard.foundation.errors import RegardError, UsageError
    from regard.reply.responses import doubtful_intents, read_responses
    from regard.reply.sensitivity import read_topics
    from regard.reply.suggester import KIND
    from regard.runs.bundle import Bundle

    path = Bundle.open(run, KIND).directory / ("sensitive.yaml" if sensitive else "responses.yaml")
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR")
    if not editor:
        raise UsageError(f"No editor is set. Set EDITOR, or edit {path} with any program.")
    try:
        code = subprocess.call([*shlex.split(editor), str(path)])
    except OSError as error:
        raise UsageError(f"The editor {editor} cannot be started ({error.strerror}). Set EDITOR.") from None
    if code:
        raise RegardError(f"The editor {editor} ended with code {code}.")
    if sensitive:
        print(f"{path}: {len(read_topics(path))} topics.")
    else:
        found = read_responses(path)
        print(f"{path}: {len(found):,} responses with {len({one.intent for one in found}):,} intents.")
        for response, near in doubtful_intents(found):
            print(
                f"“{response.text}” is the only response with the intent {response.intent}. Is {near} meant?",
                file=sys.stderr,
            )
