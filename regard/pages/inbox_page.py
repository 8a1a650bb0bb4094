"""The demo inbox: messages with suggested replies, which are inserted for editing and never sent by a click."""

from collections.abc import Sequence
from typing import NamedTuple

from regard.pages.modules import bundle, shared_view
from regard.pages.shell import render_page

TITLE = "Inbox"
START = 'modules["inbox"].show(JSON.parse(document.getElementById("data").textContent));'


class DemoMessage(NamedTuple):
    """A message of the demo."""

    sender: str
    subject: str
    text: str


MESSAGES = (
    DemoMessage("Maya", "Tonight", "Hi! Are you coming to the concert tonight?"),
    DemoMessage("Jonas", "The film", "We finally saw the new film yesterday. Did you like it?"),
    DemoMessage("Priya", "Favourites", "My favorite band is playing here next month. Who is your favorite?"),
    DemoMessage("Sam", "Report", "I finished the report. What do you think of the last part?"),
    DemoMessage("Lena", "Saturday", "Hello,\n\nShall we meet on Saturday at noon?\n\nBest,\nLena"),
    DemoMessage("Tom", "Bad news", "I have some bad news. My grandmother passed away last night."),
    DemoMessage("Newsletter", "Our offers", "This week: 20 % off all garden chairs. Read the terms on our site."),
    DemoMessage("Ana", "Thanks", "Thank you so much for your help yesterday!"),
)


def render(run: str, messages: Sequence[DemoMessage] = MESSAGES, *, can_log: bool = False) -> str:
    """Return the page.

    Args:
        run: The name of the model whose suggestions are shown.
        messages: The messages of the inbox.
        can_log: Whether the server accepts which suggestions were chosen.
    """
    script, style = bundle(["inbox"], shared_view, START)
    data = {"model": run, "messages": [message._asdict() for message in messages], "canLog": can_log}
    return render_page("inbox.html", title=TITLE, run=run, script=script, style=style, data=data, connects=True)
