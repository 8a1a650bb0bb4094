"""`regard data`: the corpora that configurations can name, and how to get them."""

import json
import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from regard.cli.help import PlainGroup, grouped

if TYPE_CHECKING:
    from regard.config.corpora import KnownCorpus

app = typer.Typer(
    cls=PlainGroup,
    help="List, download and find public corpora.",
    no_args_is_help=True,
    rich_markup_mode=None,
    epilog="Example: regard data get multi30k/en-de",
)

Name = Annotated[str, typer.Argument(help="A corpus, or a part of one, such as multi30k/en-de.", metavar="NAME")]


@app.command("list", cls=grouped({}), epilog="Example: regard data list multi30k")
def list_(
    name: Annotated[str | None, typer.Argument(help="Show this one in full.", metavar="[NAME]")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="JSON, with every file.")] = False,
) -> None:
    """List the corpora that `data: {corpus: NAME}` can name, and whether they are on this machine."""
    from regard.config.corpora import find_corpus, known_corpora
    from regard.foundation.display import columns

    corpora = list(known_corpora().values()) if name is None else [find_corpus(name)[0]]
    if as_json:
        print(json.dumps([_facts(corpus) for corpus in corpora], indent=2, ensure_ascii=False))
    elif name is None:
        rows = [["corpus", "size", "where", "what"]]
        rows += [[corpus.name, _megabytes(_size(corpus)), _state(corpus), corpus.title] for corpus in corpora]
        print(columns(rows, right=[1]))
    else:
        print(_description(corpora[0]))


@app.command(cls=grouped({}), epilog="Example: regard data get multi30k/en-de --yes")
def get(
    name: Name,
    yes: Annotated[
        bool, typer.Option("--yes", "-y", help="Accept the licence without being asked; needed without a terminal.")
    ] = False,
) -> None:
    """Download a corpus into the cache, after showing its licence; an interrupted download is resumed."""
    from regard.config.corpora import find_corpus, locate_file
    from regard.data.download import fetch_corpus
    from regard.foundation.display import bar
    from regard.foundation.errors import RegardError

    corpus, part = find_corpus(name)
    files = corpus.files_of(part)
    missing = [file for file in files if locate_file(corpus, file) is None]
    if not missing:
        print(f"{name} is already on this machine: {_place(corpus)}")
        return
    if unavailable := [file for file in missing if file.url is None]:
        raise RegardError(
            f"{name} cannot be downloaded: no public address is known for {unavailable[0].path}. Get it from "
            f"{corpus.page}, and set REGARD_DATA to the directory that has {corpus.name}/{unavailable[0].path}."
        )
    print(_terms(corpus, sum(file.size for file in missing)), file=sys.stderr)
    _ask(name, accepted=yes)
    with bar() as progress:
        directory = fetch_corpus(corpus, files, progress)
    print(f"{name} is in {directory}")
    if part or len(corpus.sections) == 1:
        print(f"Use it in a configuration: data: {{corpus: {name}}}")
    else:
        parts = ", ".join(f"{corpus.name}/{section}" for section in corpus.sections)
        print(f"Use it in a configuration: data: {{corpus: NAME}}, with one of {parts}")


@app.command(cls=grouped({}), epilog="Example: ls $(regard data path multi30k)")
def path(name: Name) -> None:
    """Print the directory of a corpus on this machine; exits with 1 if it is missing."""
    from regard.config.corpora import find_corpus, locate_file, missing_corpus
    from regard.foundation.errors import RegardError

    corpus, part = find_corpus(name)
    for file in corpus.files_of(part):
        if locate_file(corpus, file) is None:
            raise RegardError(missing_corpus(corpus, part, file.path))
    print(_place(corpus))


def _ask(name: str, *, accepted: bool) -> None:
    """Ask whether the licence is accepted; without a terminal, `--yes` is required."""
    from regard.foundation.errors import UsageError

    if accepted:
        return
    if not sys.stdin.isatty():
        raise UsageError(
            f"Nothing was downloaded. Read the licence above, and accept it with: regard data get {name} --yes"
        )
    if not typer.confirm("Download it under these terms?", err=True):
        raise typer.Exit(1)


def _terms(corpus: "KnownCorpus", size: int) -> str:
    return (
        f"{corpus.name}: {corpus.title}\n  from      {corpus.page} ({_megabytes(size)} on disk)\n"
        f"  licence   {corpus.licence}\n  cite      {corpus.citation}"
    )


def _description(corpus: "KnownCorpus") -> str:
    lines = [_terms(corpus, _size(corpus)), f"  here      {_state(corpus)}"]
    if corpus.note:
        lines.append(f"  note      {corpus.note}")
    if not corpus.downloadable:
        lines.append("  download  not available (no public address is known); set REGARD_DATA")
    lines.append(f"  parts     {', '.join(f'{corpus.name}/{part}' for part in corpus.sections)}")
    lines.append(f"  files     {', '.join(corpus.files)}")
    return "\n".join(lines)


def _facts(corpus: "KnownCorpus") -> dict[str, Any]:
    from dataclasses import asdict

    facts = asdict(corpus)
    return {**facts, "files": list(facts["files"].values()), "here": _state(corpus)}


def _size(corpus: "KnownCorpus") -> int:
    return sum(file.size for file in corpus.files.values())


def _megabytes(size: int) -> str:
    return f"{size / 1e6:.1f} MB"


def _state(corpus: "KnownCorpus") -> str:
    """Return the state of a corpus in a word or two."""
    from regard.config.corpora import cache_directory, locate_file

    places = [locate_file(corpus, file) for file in corpus.files.values()]
    found = [path for path in places if path is not None]
    if not found:
        return "can be downloaded" if corpus.downloadable else "no download"
    if len(found) < len(places):
        return "partly here"
    cached = all(path.is_relative_to(cache_directory()) for path in found)
    return "cache" if cached else "REGARD_DATA"


def _place(corpus: "KnownCorpus") -> str:
    """Return the first directory that has files of a corpus."""
    from regard.config.corpora import search_roots

    return str(next(root / corpus.name for root in search_roots() if (root / corpus.name).is_dir()))
