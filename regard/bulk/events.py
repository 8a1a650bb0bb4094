"""Events as JSON, for runners whose workers are on other machines."""

import json
from dataclasses import asdict
from typing import Any

from regard.bulk.blocks import Block, Event, ReadEvent, Rejection, ShardEnd, TranslatedBlock, UnreadableShard

KINDS: dict[str, type[Any]] = {kind.__name__: kind for kind in (Block, TranslatedBlock, ShardEnd, UnreadableShard)}


def to_json(event: ReadEvent | Event) -> str:
    """Return an event as JSON."""
    return json.dumps({"kind": type(event).__name__, **asdict(event)})


def from_json(text: str) -> ReadEvent | Event:
    """Return the event of a JSON text."""
    fields = json.loads(text)
    kind = KINDS[fields.pop("kind")]
    if "rejected" in fields:
        fields["rejected"] = [Rejection(**rejection) for rejection in fields["rejected"]]
    event: ReadEvent | Event = kind(**fields)
    return event
