"""`regard client`: translate files with a server."""

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from regard.foundation.errors import RegardError, UsageError

if TYPE_CHECKING:
    import httpx

EXAMPLES = """
\b
Examples:
  regard client http://127.0.0.1:5000 in.txt -o out.txt          resumes after an interruption
  regard client http://127.0.0.1:5000 in.txt --model news --beam 8
  echo "A dog runs." | regard client http://127.0.0.1:5000
"""

LINES = 32
"""Lines of a request."""
TRIES = 8
"""Attempts at a request; the wait doubles each time, up to half a minute."""
BUSY = (429, 502, 503, 504)
"""Status codes after which a request is tried again."""


def client(
    address: Annotated[str, typer.Argument(help="Address of the server.", metavar="URL")],
    files: Annotated[
        list[str] | None,
        typer.Argument(help="Texts, or files to translate (none: standard input).", metavar="[TEXT|FILE]..."),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="File to write; by default standard output.", metavar="FILE")
    ] = None,
    model: Annotated[str | None, typer.Option("--model", help="Name of a model, if the server has several.")] = None,
    source: Annotated[str | None, typer.Option("--source", help="Source language, to choose a model.")] = None,
    target: Annotated[str | None, typer.Option("--target", help="Target language, to choose a model.")] = None,
    beam: Annotated[int | None, typer.Option("--beam", min=1, help="Beam width; 1 is greedy.")] = None,
    key: Annotated[
        str | None, typer.Option("--key", help="API key of the server.", envvar="REGARD_API_KEY", show_envvar=True)
    ] = None,
    connections: Annotated[
        int, typer.Option("--connections", min=1, max=64, help="Requests that are sent at the same time.")
    ] = 4,
) -> None:
    """Translate text, files or standard input with a server of `regard serve`.

    Every input line gives one output line, in order. Requests that a busy server refuses are sent again. With -o, a
    second call continues where the first one stopped.
    """
    try:
        import httpx
    except ImportError:
        from regard.foundation.installation import install_command

        raise UsageError(f"`regard client` needs httpx. Install it with `{install_command('serve')}`.") from None
    from concurrent.futures import ThreadPoolExecutor

    from regard.cli.line_input import chunks, progress
    from regard.cli.partial_output import writing
    from regard.cli.places import check_places
    from regard.cli.words import file_or_text

    if not address.startswith(("http://", "https://")):
        raise UsageError(f"`{address}` is not the address of a server. Write it as http://127.0.0.1:5000.")
    check_places(output)
    given = [file_or_text(file) for file in files or ()]
    options = {"model": model, "source": source, "target": target, "beam": beam}
    body = {name: value for name, value in options.items() if value is not None}
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    call = ["client", address, *map(str, given), body]
    with (
        httpx.Client(base_url=address.rstrip("/"), timeout=120.0, headers=headers) as server,
        writing(output, json.dumps(call), 1) as (stream, done),
        progress(given) as advance,
        ThreadPoolExecutor(connections) as pool,
    ):
        advance(done)
        for chunk in chunks(given, done):
            lines = [line for _, line in chunk]
            parts = [lines[start : start + LINES] for start in range(0, len(lines), LINES)]
            for outputs in pool.map(lambda part: translate_lines(server, part, body), parts):
                stream.writelines(" ".join(text.splitlines()).replace("\t", " ") + "\n" for text in outputs)
                stream.flush()
                advance(len(outputs))


def translate_lines(server: "httpx.Client", lines: list[str], body: dict[str, Any]) -> list[str]:
    """Return the translations of some lines; tries again while the server is busy."""
    import httpx

    problem, wait = "", 0.0
    for attempt in range(TRIES):
        time.sleep(wait)
        wait = min(0.5 * 2**attempt, 30.0)
        try:
            answer = server.post("/v1/translate", json={"texts": lines, **body})
        except httpx.TransportError as error:
            problem = f"The server at {server.base_url} does not answer ({type(error).__name__})"
            continue
        try:
            content = answer.json()
        except ValueError:
            raise RegardError(f"{server.base_url} answers, but it is not a server of `regard serve`.") from None
        if answer.status_code == 200 and isinstance(content, dict) and len(content.get("outputs", ())) == len(lines):
            return [str(output["text"]) for output in content["outputs"]]
        message = content.get("error") if isinstance(content, dict) else None
        problem = f"The server answered with status {answer.status_code}: {message or 'no reason given'}".rstrip(".")
        if answer.status_code not in BUSY:
            raise RegardError(f"{problem}. What was translated before is kept.")
        stated = answer.headers.get("retry-after", "")
        wait = min(float(stated), 30.0) if stated.isdigit() else wait
    raise RegardError(f"{problem}. It was tried {TRIES} times; call again later to continue.")
