"""Web pages that are one file: nothing is fetched, everything is escaped, a telephone can show them."""

import html
import json
from typing import Any

STYLE = """
:root { color-scheme: light dark; --ink: #1f2a44; --paper: #fff; --quiet: #667; --line: #dde3ee; --tint: #f4f7fc;
  --mark: #ffe7a8; --accent: #2f5fae; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6eaf4; --paper: #12161f; --quiet: #9aa4b8; --line: #2b3446;
  --tint: #1a2130; --mark: #5c4a12; --accent: #8db4f5; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 62rem; padding: 1.2rem; font: 16px/1.5 system-ui, sans-serif; color: var(--ink);
  background: var(--paper); overflow-wrap: anywhere; }
h1 { font-size: 1.4rem; } h2 { font-size: 1.1rem; margin-top: 2rem; }
table { border-collapse: collapse; } th, td { padding: .2rem .8rem .2rem 0; text-align: left; vertical-align: top; }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; }
th { color: var(--quiet); font-weight: 600; } tr + tr td { border-top: 1px solid var(--line); }
.scroll { overflow-x: auto; } .quiet { color: var(--quiet); font-size: .9rem; }
.card { border: 1px solid var(--line); border-radius: .6rem; padding: .8rem 1rem; margin: .8rem 0; }
.card .who { color: var(--quiet); font-size: .85rem; margin-top: .4rem; }
.card > .who:first-child { margin-top: 0; }
mark { background: var(--mark); color: inherit; border-radius: .2rem; }
button, select { font: inherit; padding: .35rem .8rem; border-radius: .4rem; border: 1px solid var(--line);
  background: var(--tint); color: inherit; }
img { max-width: 100%; height: auto; background: #fff; border-radius: .4rem; }
"""


def page(title: str, body: str, *, style: str = "", script: str = "", data: Any = None) -> str:
    """A whole page; `data` is what the script finds as `DATA`."""
    given = f"const DATA = {script_safe(data)};\n" if data is not None else ""
    scripts = f"<script>\n{given}{script}</script>\n" if script else ""
    policy = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{STYLE}{style}</style>\n</head>\n<body>\n{body}\n{scripts}</body>\n"
        "</html>\n"
    )


def escape(text: str) -> str:
    """Text as HTML shows it, whatever is in it."""
    return html.escape(text)


def script_safe(data: Any) -> str:
    """JSON that can stand inside a script element: no text in it can end the element."""
    return json.dumps(data, ensure_ascii=False).replace("<", "\\u003c").replace("\u2028", " ").replace("\u2029", " ")
