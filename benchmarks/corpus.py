"""What everybody learns and translates: Multi30k where it is at hand, else made-up sentences of the same lengths.

Regard prepares it once (cleaning, joint BPE of 8,000), and the peers get the same tokens, written as `t17 t203 …`.
"""

import json
import random
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.places import CACHE, MULTI30K, say

PAIRS, QUICK_PAIRS = 29_000, 1_500
TESTED, QUICK_TESTED = 1_000, 40
VOCABULARY, QUICK_VOCABULARY = 8_000, 800
FORM = 1
"""Changes when this file does, so that what was made before is made anew."""


@dataclass(frozen=True)
class Corpus:
    """Raw text for Regard, tokens for the peers."""

    directory: Path
    name: str
    facts: dict[str, Any]

    @property
    def vocabulary(self) -> int:
        """Tokens of both sides together, special ones too."""
        return int(self.facts["vocabulary"])

    @property
    def sources(self) -> list[str]:
        """Raw test sentences."""
        return _lines(Path(self.facts["data"]["test"]["source"]))

    @property
    def references(self) -> list[str]:
        """Raw translations of them."""
        return _lines(Path(self.facts["data"]["test"]["target"]))

    def run(self, name: str, settings: dict[str, Any]) -> Path:
        """A new run directory that has its data already, and only has to be trained."""
        from regard.config.loading import from_mapping
        from regard.runs.run import Run

        place = self.directory / "runs" / name
        shutil.rmtree(place, ignore_errors=True)
        place.parent.mkdir(parents=True, exist_ok=True)
        Run.create(place, from_mapping({**settings, **self.settings}))
        for part in ("data", "tokenizers"):
            shutil.copytree(self.directory / "prepared" / part, place / part)
        return place

    @property
    def settings(self) -> dict[str, Any]:
        """Data and text of every run on this corpus."""
        tokenizer = {"kind": "bpe", "vocabulary": self.facts["asked"]}
        return {"data": self.facts["data"], "text": {"tokenizer": tokenizer, "joint": True}}


def at_hand(quick: bool) -> Corpus:
    """The corpus, prepared."""
    real = not quick and MULTI30K.is_dir()
    place = CACHE / ("multi30k" if real else "quick" if quick else "generated")
    name = "Multi30k en-de" if real else "generated sentences with the lengths of Multi30k"
    facts = place / "facts.json"
    if facts.exists() and json.loads(facts.read_text()).get("form") == FORM:
        return Corpus(place, name, json.loads(facts.read_text()))
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    say(f"Preparing {name} …")
    sizes = (QUICK_PAIRS, QUICK_TESTED) if quick else (PAIRS, TESTED)
    data = _multi30k() if real else _generated(place, *sizes)
    return _prepare(place, name, data, QUICK_VOCABULARY if quick else VOCABULARY)


def _multi30k() -> dict[str, Any]:
    parts = {"train": "train.{}.gz", "validation": "val.{}", "test": "test_2016_flickr.{}"}
    sides = {"source": "en", "target": "de"}
    return {
        part: {side: str(MULTI30K / name.format(end)) for side, end in sides.items()} for part, name in parts.items()
    }


def _generated(place: Path, pairs: int, tested: int) -> dict[str, Any]:
    """Sentences of 4 to 30 words that follow Zipf's law; a translation says other words, two neighbours exchanged."""
    draw = random.Random(1)
    syllables = [a + b + c for a in "bdfgklmnprstvz" for b in "aeiou" for c in ("", "n", "r", "s")]
    words = list(dict.fromkeys("".join(draw.choices(syllables, k=draw.randint(1, 3))) for _ in range(16_000)))
    weights = [1 / (rank + 3) for rank in range(len(words))]
    other = dict(zip(words, draw.sample(words, len(words)), strict=True))
    data: dict[str, Any] = {}
    for part, count in (("train", pairs), ("validation", 200), ("test", tested)):
        sources, targets = [], []
        for _ in range(count):
            length = min(max(round(draw.lognormvariate(2.5, 0.33)), 4), 30)
            source = draw.choices(words, weights, k=length)
            target = [other[word] for word in source]
            swap = draw.randrange(length - 1)
            target[swap], target[swap + 1] = target[swap + 1], target[swap]
            sources.append(" ".join(source).capitalize() + ".")
            targets.append(" ".join(target).capitalize() + ".")
        data[part] = {}
        for side, lines in (("source", sources), ("target", targets)):
            path = place / f"{part}.{side}"
            path.write_text("\n".join(lines) + "\n", encoding="utf-8")
            data[part][side] = str(path)
    return data


def _prepare(place: Path, name: str, data: dict[str, Any], vocabulary: int) -> Corpus:
    from regard.config.loading import from_mapping
    from regard.tasks.preparation import prepare
    from regard.text.specials import SPECIALS

    facts: dict[str, Any] = {"form": FORM, "data": data, "asked": vocabulary}
    corpus = Corpus(place, name, facts)
    prepared = prepare(from_mapping({"preset": "transformer-tiny", **corpus.settings}), place / "prepared")
    size = prepared.task.output.tokenizer.size
    for part, store in (("train", prepared.train), ("valid", prepared.validation)):
        for side, end in enumerate(("src", "trg")):
            with (place / f"{part}.{end}").open("w") as file:
                file.writelines(" ".join(f"t{token}" for token in store[row][side]) + "\n" for row in range(len(store)))
    (place / "vocabulary.txt").write_text("".join(f"t{token}\n" for token in range(len(SPECIALS), size)))
    source, target = prepared.train.lengths
    facts |= {
        "vocabulary": size,
        "pairs": len(prepared.train),
        "source_length": float(source.mean()) + 1,
        "target_length": float(target.mean()) + 1,
    }
    (place / "facts.json").write_text(json.dumps(facts, indent=2) + "\n")
    return corpus


def _lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()
