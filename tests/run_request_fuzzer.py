"""Send random requests to a server: no answer may have status 500, and every error must be a JSON object with `error`.

`python -m tests.run_request_fuzzer URL --count 5000 --seed 1` prints the number of answers by endpoint and status, and
exits with 1 if an answer was wrong.
"""

import argparse
import json
import random
import sys
from collections import Counter
from typing import Any

import httpx

PATHS = (
    *("/translate", "/detect", "/languages", "/suggest", "/frontend/settings", "/health", "/spec", "/metrics"),
    *("/translate_file", "/download_file/x", "/download_file/../../etc/passwd", "/translate/", "/%00", "/"),
)
TEXTS = (
    *(
        "a b c",
        "",
        " ",
        "\n\n",
        "a\u0000b",
        "\ud800",
        "\u202e\ufeff",
        "<b>a</b> <i>b",
        "<a href='x",
        "&amp;&#0;&#x110000;",
    ),
    *("&amp;&#0;&#x110000;", "a " * 500, "é" * 100, "🙂 a", "%", "null", "1e999", "-1", "../../x", "🏴\u200d☠️"),
)
CODES = ("en", "de", "EN", "auto", "zz", "", "zh-Hant", "e\u0000n", "en-de", "x" * 500)


def random_value(chance: random.Random, depth: int = 0) -> Any:
    """Return a random JSON value."""
    kind = chance.randrange(9 if depth < 3 else 7)
    if kind == 7:
        return [random_value(chance, depth + 1) for _ in range(chance.randrange(4))]
    if kind == 8:
        return {chance.choice(TEXTS): random_value(chance, depth + 1) for _ in range(chance.randrange(3))}
    simple = (None, True, chance.randrange(-3, 12), 1.5e300, 10**30, chance.choice(TEXTS), chance.choice(CODES))
    return simple[kind]


def random_parameters(chance: random.Random) -> dict[str, Any]:
    """Return parameters of which most are valid, and some are missing, random or unknown."""
    parameters: dict[str, Any] = {
        "q": chance.choice(TEXTS) if chance.random() < 0.7 else [chance.choice(TEXTS) for _ in range(3)],
        "source": chance.choice(CODES[:4]) if chance.random() < 0.7 else chance.choice(CODES),
        "target": "de" if chance.random() < 0.7 else chance.choice(CODES),
        "format": chance.choice(("text", "html", "xml", None)),
        "alternatives": chance.choice((None, 0, 2, "3", "x", -1, 10**9)),
        "s": chance.choice(TEXTS),
    }
    for name in list(parameters):
        if chance.random() < 0.15:
            parameters[name] = random_value(chance)
        elif chance.random() < 0.1:
            del parameters[name]
    return parameters


def random_request(chance: random.Random) -> dict[str, Any]:
    """Return the arguments of `httpx.Client.request`."""
    request: dict[str, Any] = {"url": chance.choice((*PATHS, "/translate", "/translate", "/detect"))}
    request["method"] = chance.choice(("POST", "POST", "POST", "POST", "GET", "PUT", "DELETE", "OPTIONS", "HEAD"))
    parameters = random_parameters(chance)
    body = json.dumps(parameters).encode()
    kind = chance.randrange(8)
    if kind <= 2:
        request |= {"content": body, "headers": {"Content-Type": "application/json"}}
    elif kind == 3:  # damaged JSON
        place = chance.randrange(len(body))
        body = body[:place] + bytes(chance.randrange(256) for _ in range(chance.randrange(5))) + body[place + 1 :]
        request |= {"content": body, "headers": {"Content-Type": "application/json; charset=utf-8"}}
    elif kind == 4:
        request["data"] = {name: str(value).encode("utf-8", "replace") for name, value in parameters.items()}
    elif kind == 5:
        name = chance.choice(("a.txt", "a.html", "a.srt", "a.docx", "../../a.txt", "", "a\u0000.txt", "a"))
        content = chance.choice(TEXTS).encode("utf-8", "replace") + bytes(chance.randrange(256) for _ in range(5))
        request |= {"files": {"file": (name, content)}, "data": {"source": "en", "target": chance.choice(CODES[:5])}}
    elif kind == 6:
        request["params"] = {name: str(value).encode("utf-8", "replace") for name, value in parameters.items()}
    else:
        types = ("text/plain", "multipart/form-data", "application/xml", "application/vnd.api+json", ";", "a/b; c=\xff")
        request |= {"content": body, "headers": {"Content-Type": chance.choice(types).encode("latin-1")}}
    return request


def problem_of(answer: httpx.Response) -> str:
    """Return what is wrong with an answer; nothing if it is right."""
    if answer.status_code >= 500 and answer.status_code not in (503, 504):
        return f"status {answer.status_code}"
    if answer.status_code < 400 or answer.request.method == "HEAD":
        return ""
    try:
        content = answer.json()
    except ValueError:
        return "an error that is not JSON"
    return "" if isinstance(content, dict) and isinstance(content.get("error"), str) else "an error without `error`"


def fuzz(url: str, count: int, seed: int) -> tuple[Counter[str], list[str]]:
    """Send requests, and return the number of answers by endpoint and status, and the wrong ones."""
    chance, counts, problems = random.Random(seed), Counter[str](), []
    with httpx.Client(base_url=url, timeout=120) as client:
        for number in range(count):
            request = random_request(chance)
            try:
                answer = client.request(**request)
            except httpx.HTTPError as error:
                problems.append(f"request {number}, {request['url']}: no answer ({type(error).__name__})")
                continue
            counts[f"{request['url'][:20]} {answer.status_code}"] += 1
            if problem := problem_of(answer):
                problems.append(f"request {number}: {problem}: {request!r:.300} → {answer.text[:200]!r}")
    return counts, problems


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("url")
    parser.add_argument("--count", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    found, wrong = fuzz(given.url, given.count, given.seed)
    for endpoint, number in sorted(found.items()):
        print(f"{number:6} {endpoint}")
    print("\n".join(wrong) or "No wrong answer.")
    sys.exit(bool(wrong))
