"""What users chose, logged locally and only if they ask for it, and fed back into the ranking."""

import json
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from regard.foundation.errors import UsageError
from regard.reply.preprocessing import normalise_response
from regard.reply.responses import Response

STRENGTH = 5.0
"""Suggestions that count as evidence for the average rate, so that one click changes little."""


@dataclass(frozen=True)
class Feedback:
    """How often each response was shown and chosen, by its normal form."""

    shown: Counter[str]
    chosen: Counter[str]

    def bonuses(self, responses: Sequence[Response]) -> NDArray[np.float64]:
        """Return for each response the logarithm of its rate of use over the average rate; 0 where nothing is known."""
        total, used = sum(self.shown.values()), sum(self.chosen.values())
        if not total or not used:
            return np.zeros(len(responses))
        average = used / total
        rates = [
            (self.chosen[response.normal] + STRENGTH * average) / (self.shown[response.normal] + STRENGTH)
            for response in responses
        ]
        return np.array([math.log(rate / average) for rate in rates])


def log_choice(path: Path, shown: Sequence[str], chosen: str | None, sent: str | None = None) -> None:
    """Append what was shown, which suggestion was chosen, and the text that was sent; the message is not logged."""
    if chosen is not None and chosen not in shown:
        raise UsageError("The chosen text is not among those shown. Send one of them, or null.")
    entry = {
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "shown": list(shown),
        "chosen": chosen,
        "edited": chosen is not None and sent is not None and sent.strip() != chosen,
        "sent": sent,
    }
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(entry, ensure_ascii=False) + "\n")


def read_feedback(path: Path) -> Feedback:
    """Read the log; lines that are damaged are skipped."""
    shown: Counter[str] = Counter()
    chosen: Counter[str] = Counter()
    if path.is_file():
        for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
            try:
                entry = json.loads(line)
                texts = [normalise_response(str(text)) for text in entry["shown"]]
            except (ValueError, TypeError, KeyError, RecursionError):
                continue
            shown.update(texts)
            if isinstance(entry.get("chosen"), str):
                chosen[normalise_response(entry["chosen"])] += 1
    return Feedback(shown, chosen)
