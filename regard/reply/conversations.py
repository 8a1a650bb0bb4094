"""Conversations from files: JSON lines, tables, mailboxes and folders of mails.

| file | content |
|---|---|
| `.jsonl`, `.json`, also `.gz` | objects with `turns` (a list of texts), or with `message` and `reply` |
| `.csv`, `.tsv`, `.xlsx`, `.parquet` | columns `message` and `reply`, or `conversation` and `text` in order |
| `.mbox` | mails; an answer is found by its `In-Reply-To` |
| a folder | `.eml` files, read as an mbox |
"""

import json
import mailbox
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any

from regard.data.lines import read_lines
from regard.data.tables import table_rows
from regard.foundation.errors import RegardError, UsageError
from regard.reply.mail import LARGEST, Mail, parse_mail
from regard.reply.preprocessing import clean_chat, clean_mail

TABLES = (".csv", ".tsv", ".xlsx", ".parquet")


@dataclass(frozen=True)
class Exchange:
    """A message and its reply, cleaned; the reply is empty if the message was not answered."""

    conversation: int
    """Exchanges of one conversation are held out together."""
    message: str
    reply: str


def read_exchanges(path: str | Path) -> Iterator[Exchange]:
    """Yield the exchanges of a file or folder of conversations."""
    path = Path(path)
    if not path.exists():
        raise UsageError(f"{path} does not exist. Name a file of conversations, or a folder of .eml files.")
    ending = Path(path.name.removesuffix(".gz")).suffix.lower()
    if path.is_dir():
        yield from _mails(parse_mail(file.read_bytes()) for file in sorted(path.rglob("*.eml")) if _is_mail(file))
    elif ending in (".jsonl", ".json"):
        yield from _json_lines(path)
    elif ending in TABLES:
        yield from _table(path)
    elif ending == ".mbox":
        box = mailbox.mbox(path, create=False)
        try:
            yield from _mails(parse_mail(box.get_bytes(key)) for key in box.keys())  # noqa: SIM118
        finally:
            box.close()
    else:
        raise UsageError(
            f"{path} has an unknown ending. Conversations are read from .jsonl, {', '.join(TABLES)}, .mbox, or a "
            "folder of .eml files."
        )


def _is_mail(path: Path) -> bool:
    return path.is_file() and path.stat().st_size <= LARGEST


def _json_lines(path: Path) -> Iterator[Exchange]:
    for number, line in enumerate(read_lines(path), start=1):
        if not line.strip():
            continue
        try:
            found = json.loads(line)
        except (ValueError, RecursionError):
            found = None
        turns = _turns(found) if isinstance(found, dict) else None
        if turns is None:
            raise RegardError(
                f"{path}:{number} is not a conversation. Write an object with `turns`, a list of texts, or with "
                "`message` and `reply`."
            )
        yield from _chat(number, turns)


def _turns(found: dict[str, Any]) -> list[str] | None:
    turns = found.get("turns")
    if turns is None and isinstance(found.get("message"), str):
        turns = [found["message"], found.get("reply") or ""]
    return turns if isinstance(turns, list) and all(isinstance(turn, str) for turn in turns) else None


def _chat(number: int, turns: list[str]) -> Iterator[Exchange]:
    """Yield every turn with the one after it."""
    cleaned = [clean_chat(turn) for turn in turns]
    for message, reply in pairwise(cleaned):
        if message:
            yield Exchange(number, message, reply)


def _table(path: Path) -> Iterator[Exchange]:
    rows = (cells for _, cells in table_rows(str(path)))
    header = [name.strip().lower() for name in next(rows, [])]
    if {"message", "reply"} <= set(header):
        message, reply = header.index("message"), header.index("reply")
        for number, cells in enumerate(rows, start=1):
            yield from _chat(number, [_cell(cells, message), _cell(cells, reply)])
    elif {"conversation", "text"} <= set(header):
        name, text = header.index("conversation"), header.index("text")
        for number, (_, turns) in enumerate(groupby(rows, key=lambda cells: _cell(cells, name)), start=1):
            yield from _chat(number, [_cell(cells, text) for cells in turns])
    else:
        raise RegardError(
            f"{path} has the columns {', '.join(header) or 'of no name'}. Name two of them `message` and `reply`, or "
            "`conversation` and `text`."
        )


def _cell(cells: list[str], index: int) -> str:
    return cells[index] if index < len(cells) else ""


def _mails(mails: Iterable[Mail]) -> Iterator[Exchange]:
    """Yield every mail with its first answer by another sender; a thread is one conversation."""
    found = list(mails)
    by_name = {mail.identifier: index for index, mail in enumerate(found) if mail.identifier}
    answer: dict[int, int] = {}
    thread = list(range(len(found)))
    for index, mail in enumerate(found):
        other = by_name.get(mail.answers)
        if other is None or other == index:
            continue
        thread[index] = other
        if found[other].sender != mail.sender:
            answer.setdefault(other, index)
    for index, mail in enumerate(found):
        if mail.forwarded or not (message := clean_mail(mail.text)):
            continue
        reply = clean_mail(found[answer[index]].text) if index in answer else ""
        yield Exchange(_root(thread, index), message, reply)


def _root(thread: list[int], index: int) -> int:
    """Return the first mail of a thread; mails that answer one another in a circle are one thread."""
    seen = {index}
    while thread[index] not in seen:
        index = thread[index]
        seen.add(index)
    return min(seen) if thread[index] != index else index
