"""Summarising: long sources whose end is left out, several references, and outputs of a given number of words."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import regard
from regard.cli import main
from regard.config.loading import from_mapping
from regard.config.text import Tokenizer as Tokens
from regard.foundation.errors import UsageError
from regard.search import Constraints, Search, beam, greedy
from regard.search.steps import Source
from regard.search.word_count import LONGEST_WORD, WordCount
from regard.text.learning import train as learn
from regard.text.specials import EOS, UNK
from regard.training.loop import train

WORDS = [f"w{number}" for number in range(30)]


def documents(count: int, longest: int = 30) -> list[dict[str, Any]]:
    """Texts whose summary is their first words; every tenth is far too long."""
    random = np.random.default_rng(0)
    found = []
    for number in range(count):
        words = random.choice(WORDS, 400 if number % 10 == 0 else int(random.integers(5, longest)))
        summary = " ".join(words[: 2 + number % 4])
        found.append({"text": " ".join(words) + "\nregards", "summaries": [summary, summary + " too"]})
    return found


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Path:
    directory = tmp_path_factory.mktemp("documents")
    path = directory / "documents.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in documents(200)))
    config = {
        "task": {"kind": "summarising"},
        "data": {
            "train": {"jsonl": str(path), "source_field": "text", "target_field": "summaries"},
            "held_out": 30,
            "cleaning": {"max_length": 64},
        },
        "model": {
            "width": 32,
            "copying": True,
            "encoder": {"kind": "transformer", "layers": 1, "window": 8},
            "decoder": {"kind": "transformer", "layers": 1},
        },
        "training": {
            "steps": 40,
            "validate_every": 20,
            "checkpoint_every": 20,
            "batch_tokens": 2000,
            "device": "cpu",
            "early_stopping": {"metric": "rougeL"},
            "coverage": 0.5,
        },
    }
    train(from_mapping(config), directory / "run")
    return directory / "run"


def test_bulk_says_how_many_documents_were_not_read_to_their_end(run: Path, tmp_path: Path, capsys) -> None:
    (tmp_path / "in.txt").write_text(f"{'a b ' * 60}\n{'a b ' * 60}\na b\n")
    command = ["bulk", str(run), str(tmp_path / "in.txt"), "--workers", "1", "-o"]
    assert main([*command, str(tmp_path / "out")]) == 0
    assert "Lines longer than this run reads: 2 of the 3 translated now. Only the beginning" in capsys.readouterr().err
    assert main([*command, str(tmp_path / "json"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["cut_lines"] == 2
    (tmp_path / "in.txt").write_text("a b\n")
    assert main([*command, str(tmp_path / "short")]) == 0
    assert "longer than" not in capsys.readouterr().err


def test_long_sources_are_cut_and_not_dropped(run: Path) -> None:
    report = json.loads((run / "data" / "finished.json").read_text())
    assert not any("long" in reason for reason in report["dropped"])
    assert any("Only the first 64 of each are read" in note for note in report["notes"])
    task = regard.load(run).loaded.task
    (row,) = task.input.rows(["w1 " * 500])
    assert row == task.input.rows(["w1 " * 500 + "w2 w3"])[0] and len(row) == 64
    assert task.kind.cleaning.max_ratio == float("inf")


def test_the_rest_of_a_long_source_is_reported(run: Path, tmp_path: Path, capsys) -> None:
    source = tmp_path / "in.txt"
    source.write_text("w1 w2 w3\n" + "w4 " * 300 + "\n")
    assert main(["translate", str(run), str(source)]) == 0
    said = capsys.readouterr()
    assert len(said.out.splitlines()) == 2
    assert "1 of 2 texts have more than 64 tokens. Only the first 64 of each are read" in said.err
    assert main(["translate", str(run), str(run), str(source)]) == 0
    assert "1 of 2 texts have more than 64 tokens" in capsys.readouterr().err  # an ensemble counts each text once
    reference = tmp_path / "out.txt"
    reference.write_text("w1 w2\nw4 w4\n")
    assert main(["evaluate", str(run), "--source", str(source), "--reference", str(reference)]) == 0
    said = capsys.readouterr()
    assert "ROUGE-L" in said.out and "Only the first 64 of each were read" in said.out


def test_scores_are_rouge_over_all_references(run: Path, capsys) -> None:
    assert main(["evaluate", str(run), "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert set(facts["scores"]) == {"rouge1", "rouge2", "rougeL"}
    assert facts["sentences"] == 15  # thirty pairs of fifteen documents


def test_references_that_rouge_cannot_read_are_reported(run: Path, tmp_path: Path, capsys) -> None:
    (tmp_path / "in.txt").write_text("w1 w2 w3\nw4\n")
    (tmp_path / "out.txt").write_text("отчёт\nw4\n")
    files = ["--source", str(tmp_path / "in.txt"), "--reference", str(tmp_path / "out.txt")]
    assert main(["evaluate", str(run), *files]) == 0
    assert "1 of 2 references have none of these. Use chrF" in capsys.readouterr().out


@pytest.mark.parametrize("count", [1, 2, 3, 5, 8])
def test_outputs_have_the_asked_number_of_words(run: Path, count: int) -> None:
    model, texts = regard.load(run), [row["text"] for row in documents(20)]
    for width in (1, 4):
        lists = model.hypotheses(texts, constraints=Constraints(words=(count, count)), beam=width)
        assert {len(found[0].text.split()) for found in lists} == {count}


@pytest.mark.parametrize("kind", ["bpe", "characters", "words"])
@pytest.mark.parametrize("count", [1, 2, 4])
def test_a_model_that_repeats_a_character_writes_the_asked_number_of_words(kind: str, count: int) -> None:
    """Its words end after `LONGEST_WORD` tokens, and begin at the latest when there is just room for them."""
    texts = ["one two three", "four five six", "seven eight"]
    tokenizer = learn(Tokens.model_validate({"kind": kind, "min_frequency": 1}), lambda: iter(texts * 9), "test")
    pieces = tokenizer.vocabulary
    repeated = pieces.index("e") if "e" in pieces else len(pieces) - 1

    class Stutter:
        def start(self, source: Source) -> Any:
            return self

        def select(self, rows: Any) -> Any:
            return self

        def step(self, last: Any, state: Any) -> Any:
            scores = torch.arange(tokenizer.size).float().repeat(len(last), 1) / 100
            scores[:, repeated] = 9.0
            return scores.log_softmax(-1), state

    rule = WordCount(count, count, tokenizer)
    for limit in (rule.needs + 1, rule.needs + 9, rule.needs + 200):
        for found in (
            greedy(Stutter(), torch.tensor([[7, EOS]]), [limit], rules=[rule]),
            beam(Stutter(), torch.tensor([[7, EOS]]), [limit], width=3, rules=[rule])[0],
        ):
            words = tokenizer.decode(found[0].tokens).split()
            assert len(words) == count and len(found[0].tokens) <= limit
            assert all(len(word) <= LONGEST_WORD + max(map(len, pieces)) for word in words[:-1])


def test_an_empty_text_stays_empty(run: Path, capsys, tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_text("\nw1 w2 w3\n   \n")
    assert main(["translate", str(run), str(tmp_path / "in.txt"), "--length", "3"]) == 0
    assert [len(line.split()) for line in capsys.readouterr().out.splitlines()] == [0, 3, 0]


def test_the_command_line_takes_a_number_of_words(run: Path, capsys) -> None:
    assert main(["translate", str(run), "w1 w2 w3 w4 w5", "--length", "3"]) == 0
    assert len(capsys.readouterr().out.split()) == 3


def test_short_is_the_shortest_quarter(run: Path, tmp_path: Path, capsys) -> None:
    pairs = [json.loads(line) for line in (run / "data" / "validation.jsonl").read_text().splitlines()]
    quarter = int(np.quantile([len(pair["target"].split()) for pair in pairs], 0.25))
    source = tmp_path / "in.txt"
    source.write_text("".join(f"{' '.join(row['text'].split())}\n" for row in documents(10)))
    assert main(["translate", str(run), str(source), "--length", "short"]) == 0
    counts = [len(output.split()) for output in capsys.readouterr().out.splitlines()]
    assert min(counts) >= 1 and max(counts) <= quarter


@pytest.mark.parametrize("length", ["0", "-1", "many", "2.5", "", "10001", "9" * 5000])
def test_other_lengths_are_refused(run: Path, capsys, length: str) -> None:
    assert main(["translate", str(run), "w1 w2", "--length", length]) == 2
    assert "--length is a number of words or `short`" in capsys.readouterr().err


@pytest.mark.parametrize("words", [(0, 3), (3, 2), (1,), "5", 5, (1, 10**6), (1.0, 2.0)])
def test_impossible_limits_are_refused(words: Any) -> None:
    with pytest.raises(UsageError, match="`words`"):
        Constraints(words=words)


def test_python_takes_limits(run: Path) -> None:
    found = regard.load(run)("w1 w2 w3 w4", Search(constraints=Constraints(words=(3, 4), prefix="w5")))
    assert 3 <= len(found.text.split()) <= 4 and found.text.startswith("w5")


def test_the_rule_counts_as_split_does(run: Path) -> None:
    """For random outputs of every tokenizer piece: the rule's count is that of the decoded text."""
    tokenizer = regard.load(run).loaded.target_tokenizer
    rule = WordCount(2, 3, tokenizer)
    space = tokenizer.vocabulary.index("▁")
    random = torch.Generator().manual_seed(1)
    letters = [token for token, piece in enumerate(tokenizer.vocabulary) if token > 261 or token == UNK]
    for _ in range(200):
        tokens = [letters[int(torch.randint(len(letters), (1,), generator=random))] for _ in range(6)]
        tokens = [space if int(torch.randint(4, (1,), generator=random)) == 0 else token for token in tokens]
        state = rule.start
        for token in tokens:
            state = rule.after(state, token)
        assert state.number == len(tokenizer.decode(tokens).split()), tokens
        mask = rule.allowed(state, 10, tokenizer.size)
        may_end = mask is None or bool(mask[EOS])
        assert may_end == (2 <= state.number <= 3 and not state.spaced) or state.number > 3
