"""Damaged mails, generated from a seed."""

import random
from collections.abc import Iterator

from tests.mail_templates import composed_mails

PIECES = (
    b"\r\n",
    b"\n\n",
    b"\0",
    b"\xff\xfe",
    b"=20\n",
    b"=",
    b"--",
    b"-- \n",
    b"> > ",
    b"Thanks,\n",
    b"Hi " * 40,
    b"A, " * 200,
    b"Ann " * 300,
    b"<div>" * 50,
    b"<!--",
    b"&#x110000;",
    b"&amp" * 30,
    b"Content-Type: text/html; charset=utf-7\n\n",
    b"Content-Type: multipart/mixed; boundary=x\n\n--x\n",
    b"Content-Transfer-Encoding: base64\n",
    b"charset=unknown-8bit",
    b"From: a\nSent: b\nTo: c\nSubject: d\n",
    b"On Mon, 1 Jan 2024 at 10:00, Ann <a@b.c> wrote:\n",
    b" " * 5000,
    b"\n" * 500,
    b"x" * 3000,
    b"." * 2000,
    b"(See attached file: " * 20,
    b"This e-mail is " * 60,
    "Sehr geehrte Frau Müller,\u2028\u200f\U0001f600".encode(),
    "Ä".encode("latin-1"),
)
"""What is inserted: line ends, encodings, MIME headers, marks of clients, and long repetitions."""


def fuzzed_mails(count: int, *, seed: int) -> Iterator[bytes]:
    """Yield `count` mails of common clients with random damage."""
    generator = random.Random(seed)
    templates = [mail.content for mail in composed_mails()]
    for _ in range(count):
        yield damage(bytearray(generator.choice(templates)), generator)


def damage(content: bytearray, generator: random.Random) -> bytes:
    """Return a mail with up to forty changes: removed, repeated, replaced and inserted bytes."""
    for _ in range(generator.randrange(1, 40)):
        place = generator.randrange(len(content) + 1)
        length = min(generator.randrange(60), len(content) - place)
        match generator.randrange(5):
            case 0:
                del content[place : place + length]
            case 1:
                content[place:place] = content[place : place + length] * generator.randrange(1, 4)
            case 2:
                content[place : place + length] = generator.randbytes(length)
            case 3:
                content[place:place] = generator.choice(PIECES)
            case _:
                content[place:place] = generator.randbytes(generator.randrange(4))
    return bytes(content)
