"""From a corpus to token stores: what is prepared once is kept, and what cannot be prepared says why."""

import gzip
import json
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from regard.config.run import RunConfig
from regard.data.corpus import Pair, read
from regard.data.joining import NO_NUMBER, add_joined_pairs
from regard.data.store import StoreWriter
from regard.foundation.errors import RegardError
from regard.tasks import preparation as preparing
from regard.tasks.inputs.text import cut_rows, share_room
from regard.tasks.preparation import prepare
from regard.text.specials import SEP

MULTI30K = Path("/work/shared/data/multi30k")
needs_multi30k = pytest.mark.skipif(not MULTI30K.exists(), reason=f"needs Multi30k in {MULTI30K}")


def write(path: Path, content: str | bytes, packed: bool = False) -> str:
    data = content.encode() if isinstance(content, str) else content
    path.write_bytes(gzip.compress(data) if packed else data)
    return str(path)


def config(train: dict[str, Any], **more: Any) -> RunConfig:
    text = {"joint": False, "tokenizer": {"kind": "words", "min_frequency": 1}}
    return RunConfig.model_validate({"data": {"train": train, **more}, "text": text})


def numbers(path: Path, count: int) -> dict[str, str]:
    return {"tsv": write(path, "".join(f"row {n} of many\tZeile {n} von vielen\n" for n in range(count)))}


def test_a_test_part_can_be_held_out_beside_validation(tmp_path: Path) -> None:
    corpus = numbers(tmp_path / "x.tsv", 300)
    plain = prepare(config(corpus, held_out=20), tmp_path / "plain")
    tested = prepare(config(corpus, held_out=20, held_out_test=10), tmp_path / "tested")
    assert tested.validation_pairs == plain.validation_pairs and not plain.test_pairs
    assert len(tested.test_pairs) == 10 and len(tested.train) == 270
    named = config(corpus, held_out=20, held_out_test=10, test=numbers(tmp_path / "test.tsv", 7))
    assert len(prepare(named, tmp_path / "named").test_pairs) == 7


def test_every_so_many_th_pair_is_taken_and_no_other_is_learnt_or_held_out(tmp_path: Path) -> None:
    prepared = prepare(config(numbers(tmp_path / "x.tsv", 310), every=3, held_out=10), tmp_path / "run")
    assert len(prepared.train) == 94 and len(prepared.validation_pairs) == 10
    learnt = {prepared.task.input.tokenizer.decode(prepared.train[place][0]) for place in range(94)}
    met = learnt | {pair.source for pair in prepared.validation_pairs}
    assert met == {f"row {n} of many" for n in range(0, 310, 3)}


def test_where_every_so_many_th_leaves_too_few_that_is_told(tmp_path: Path) -> None:
    with pytest.raises(RegardError, match="too few") as told:
        prepare(config(numbers(tmp_path / "x.tsv", 250), every=300), tmp_path / "thinned")
    assert str(told.value).endswith("Only one example in 300 was used. Make data.every smaller.")
    with pytest.raises(RegardError, match="too few") as told:
        prepare(config(numbers(tmp_path / "one.tsv", 1)), tmp_path / "run")
    assert "data.every" not in str(told.value)


def test_joined_pairs_are_whole_pairs_of_the_corpus_one_behind_the_other(tmp_path: Path) -> None:
    corpus = numbers(tmp_path / "x.tsv", 300)
    plain = prepare(config(corpus, held_out=20), tmp_path / "plain")
    joined = prepare(config(corpus, held_out=20, joined=0.5), tmp_path / "joined")
    assert (
        joined.validation_pairs == plain.validation_pairs
        and joined.task.input.tokenizer.size == plain.task.input.tokenizer.size
    )
    kept = {tuple(map(tuple, plain.train[place])) for place in range(len(plain.train))}
    pairs = [tuple(map(tuple, joined.train[place])) for place in range(len(joined.train))]
    longer = [pair for pair in pairs if pair not in kept]
    assert len(pairs) - len(longer) == len(kept) == 280
    assert len(longer) == joined.report.joined and 100 < len(longer) < 180
    for source, target in longer:
        assert len(source) == len(target) in (8, 12, 16)
        pieces = [(source[start : start + 4], target[start : start + 4]) for start in range(0, len(source), 4)]
        assert set(pieces) <= kept
    assert "made by joining" in str(joined.report)


def test_joining_is_the_same_for_the_same_seed_and_drops_nothing_of_the_corpus(tmp_path: Path) -> None:
    pairs = [(number, Pair(f"s{number}", f"t{number}")) for number in range(1, 500)]
    first, again, other = (list(add_joined_pairs(pairs, 1.5, seed)) for seed in (1, 1, 2))
    assert first == again != other
    assert [found for found in first if found[0]] == pairs
    assert 650 < sum(number == NO_NUMBER for number, _ in first) < 850


def test_joined_pairs_that_are_too_long_are_not_counted_as_dropped(tmp_path: Path) -> None:
    corpus = numbers(tmp_path / "x.tsv", 300)
    report = prepare(config(corpus, joined=1.0, cleaning={"max_length": 8}), tmp_path / "run").report
    assert not report.dropped and 0 < report.joined < 150


def test_prepared_once_is_reopened_without_the_corpus(tmp_path: Path) -> None:
    settings = config(numbers(tmp_path / "x.tsv", 300), test=numbers(tmp_path / "test.tsv", 7))
    heard: Counter[str] = Counter()
    first = prepare(settings, tmp_path / "run", lambda task, done, total: heard.update([task]))
    assert {"reading", "learning tokenizers", "storing"} <= set(heard)
    for corpus in tmp_path.glob("*.tsv"):
        corpus.unlink()
    second = prepare(settings, tmp_path / "run")
    assert first.task.vocabularies.fingerprints == second.task.vocabularies.fingerprints
    assert (first.validation_pairs, first.test_pairs, first.report) == (
        second.validation_pairs,
        second.test_pairs,
        second.report,
    )
    assert (len(second.train), len(second.validation), len(second.test_pairs)) == (270, 30, 7)
    assert sorted(path.name for path in (tmp_path / "run" / "tokenizers").iterdir()) == ["source.json", "target.json"]


def test_validation_pairs_and_store_are_the_same_pairs(tmp_path: Path) -> None:
    validation = {
        "tsv": write(
            tmp_path / "v", "row 1 of many\tZeile 1 von vielen\n\tempty\n" + "long " * 99 + "\tx\nrow 2\tZeile 2\n"
        )
    }
    settings = config(numbers(tmp_path / "x.tsv", 150), validation=validation, cleaning={"max_length": 20})
    prepared = prepare(settings, tmp_path / "run")
    long = prepared.task.input.tokenizer.encode_batch(["long " * 99])[0]
    assert [pair.source for pair in prepared.validation_pairs] == ["row 1 of many", "", "long " * 99, "row 2"]
    stored = [prepared.task.input.tokenizer.decode(prepared.validation[i][0]) for i in range(len(prepared.validation))]
    assert stored == ["row 1 of many", "", prepared.task.input.tokenizer.decode(long[:20]), "row 2"]
    assert [note.split(":")[0] for note in prepared.report.notes] == [
        "Of 4 validation pairs, 1 have an empty side. They are scored too.",
        "Of 4 validation pairs, 1 have a side of more than 20 tokens (data.cleaning.max_length). Their loss is that of "
        "the first 20 tokens of each side. They are scored too.",
    ]
    assert prepared.report.overlap == 1
    assert "1 validation pairs also occur" in str(prepared.report)
    assert len(prepared.train) == 150


def test_an_interrupted_build_is_done_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = config(numbers(tmp_path / "x.tsv", 100))
    with monkeypatch.context() as patch:
        patch.setattr(preparing, "_write_pairs", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            prepare(settings, tmp_path / "run")
    assert len(prepare(settings, tmp_path / "run").train) == 90


def test_files_of_others_are_never_touched(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    settings = config(numbers(tmp_path / "data" / "test.jsonl", 100))
    with pytest.raises(RegardError, match="Choose another directory"):
        prepare(settings, tmp_path)
    assert (tmp_path / "data" / "test.jsonl").read_text().startswith("row 0")


def test_deleted_data_is_built_anew(tmp_path: Path) -> None:
    settings = config(numbers(tmp_path / "x.tsv", 100))
    first = prepare(settings, tmp_path / "run")
    shutil.rmtree(tmp_path / "run" / "data")
    assert prepare(settings, tmp_path / "run").validation_pairs == first.validation_pairs
    assert sorted(path.name for path in (tmp_path / "run" / "data").iterdir()) == [
        "finished.json",
        "test.jsonl",
        "train",
        "validation",
        "validation.jsonl",
    ]


def test_pairs_too_long_in_tokens_are_dropped_and_reported(tmp_path: Path) -> None:
    lines = "".join(f"{'a ' * (5 if n % 10 else 30)}{n}\tb {n} {'b ' * 5}\n" for n in range(100))
    settings = config({"tsv": write(tmp_path / "x", lines)}, cleaning={"max_length": 20})
    prepared = prepare(settings, tmp_path / "run")
    assert prepared.report.dropped["too long"] >= 8
    assert prepared.report.train == len(prepared.train)
    assert prepared.train.lengths[0].max() <= 20


@pytest.mark.parametrize(
    ("lines", "message"),
    [("a\tb\n", "too few"), ("a\tb\n" * 30, "too few"), ("\tb\n" * 30, "no training pair|too few")],
)
def test_a_corpus_too_small_to_split_says_so(lines: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(RegardError, match=message):
        prepare(config({"tsv": write(tmp_path / "x", lines)}), tmp_path / "run")


def test_a_directory_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    write(tmp_path / "run", "a file in the way")
    with pytest.raises(RegardError, match="Cannot write"):
        prepare(config(numbers(tmp_path / "x.tsv", 50)), tmp_path / "run")


def test_a_full_disk_is_an_error_and_leaves_nothing_half_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = config(numbers(tmp_path / "x.tsv", 50))
    with monkeypatch.context() as patch:
        patch.setattr(StoreWriter, "_write", lambda *_: (_ for _ in ()).throw(OSError(28, "No space left on device")))
        with pytest.raises(RegardError, match="No space left"):
            prepare(settings, tmp_path / "run")
    assert len(prepare(settings, tmp_path / "run").train) == 45


def test_damaged_preparation_says_how_to_mend_it(tmp_path: Path) -> None:
    settings = config(numbers(tmp_path / "x.tsv", 50))
    prepare(settings, tmp_path / "run")
    (tmp_path / "run" / "data" / "validation.jsonl").write_text("{")
    with pytest.raises(RegardError, match=r"line 1 is not an example.*Restore it"):
        prepare(settings, tmp_path / "run")


def test_a_line_of_a_million_characters_is_only_dropped(tmp_path: Path) -> None:
    lines = "".join(f"row {n}\tZeile {n}\n" for n in range(50)) + f"{'x' * 1_000_000}\ty\n"
    prepared = prepare(config({"tsv": write(tmp_path / "x", lines)}), tmp_path / "run")
    assert prepared.report.dropped == {"too long": 1}
    assert prepared.report.examples == {"too long": 51}


def test_lone_surrogates_of_json_pass_through(tmp_path: Path) -> None:
    lines = "".join(json.dumps({"source": f"\ud800 {n}", "target": f"{n} \udfff"}) + "\n" for n in range(50))
    prepared = prepare(config({"jsonl": write(tmp_path / "x", lines)}), tmp_path / "run")
    assert all(pair.source.startswith("\ud800") for pair in prepared.validation_pairs)


@needs_multi30k
def test_multi30k_is_prepared_whole(tmp_path: Path) -> None:
    train = {"source": str(MULTI30K / "val.en"), "target": str(MULTI30K / "val.de")}
    settings = RunConfig.model_validate({"data": {"train": train}})
    prepared = prepare(settings, tmp_path)
    assert prepared.task.input.tokenizer is prepared.task.output.tokenizer
    source, target = prepared.train[0]
    pairs = dict.fromkeys(read(settings.data.train))
    decoded = Pair(prepared.task.input.tokenizer.decode(source), prepared.task.output.tokenizer.decode(target))
    assert decoded in {Pair(*(prepared.task.input.tokenizer.normalise(side) for side in pair)) for pair in pairs}
    assert np.all(prepared.train.lengths[0] > 0)


AESLC = Path("/work/shared/data/aeslc")


@pytest.mark.skipif(not AESLC.is_dir(), reason="the AESLC emails are not at hand")
def test_all_validation_pairs_of_a_summarising_corpus_are_scored(tmp_path: Path) -> None:
    with gzip.open(AESLC / "dev.jsonl.gz", "rt") as file:
        rows = [json.loads(line) for line in file]
    pairs = "".join(json.dumps({"source": row["email"], "target": row["subjects"][0]}) + "\n" for row in rows)
    settings = config(
        numbers(tmp_path / "x.tsv", 300), validation={"jsonl": write(tmp_path / "dev.jsonl", pairs)}, held_out_test=0
    )
    prepared = prepare(settings, tmp_path / "run")
    assert len(prepared.validation_pairs) == len(prepared.validation) == len(rows) == 1960
    assert any("more than 256 tokens" in note for note in prepared.report.notes)


def test_of_several_texts_the_longest_is_cut() -> None:
    assert cut_rows([7, 7, 7, 7, 7, SEP, 8], 5, several=True) == [7, 7, 7, SEP, 8]
    assert cut_rows([7, SEP, 8, 8, 8, 8], 4, several=True) == [7, SEP, 8, 8]
    assert cut_rows([7, 7, 7], 2, several=True) == [7, 7] and cut_rows([7, SEP, 8], 9, several=True) == [7, SEP, 8]
    assert share_room([10, 2, 9], 12) == [5, 2, 5]
