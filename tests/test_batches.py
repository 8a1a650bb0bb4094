"""Laws of batches: every pair once, within the budget, in an order that anyone can compute and continue."""

import json
from dataclasses import asdict
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from regard.config.run import RunConfig
from regard.config.text import Text
from regard.data.batches import Batch, Batches, Cursor, bucket, cut
from regard.data.corpus import Pair
from regard.data.store import StoreWriter, TokenStore
from regard.foundation.errors import RegardError
from regard.tasks.preparation import prepare
from regard.text.dropout import BpeDropout
from regard.text.learning import train_tokenizers
from regard.text.specials import BOS, EOS, PAD

MULTI30K = Path("/work/shared/data/multi30k")


def make(directory: Path, lengths: list[tuple[int, int]]) -> TokenStore:
    rng = np.random.default_rng(0)
    sides = [[rng.integers(6, 99, pair[side]).tolist() for pair in lengths] for side in (0, 1)]
    with StoreWriter(directory, 100) as writer:
        writer.write(*sides)
    return TokenStore(directory)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> TokenStore:
    rng = np.random.default_rng(1)
    source = rng.integers(1, 40, 1000)
    target = np.maximum(source + rng.integers(-5, 6, 1000), 0)
    return make(tmp_path_factory.mktemp("batches") / "store", list(zip(source.tolist(), target.tolist(), strict=True)))


def epoch(batches: Batches, number: int = 0) -> list[Batch]:
    return [batch for batch, _ in islice(batches.after(Cursor(number, 0)), batches.per_epoch(number))]


def same(first: Batch, second: Batch) -> bool:
    return (
        torch.equal(first.source, second.source)
        and torch.equal(first.target, second.target)
        and np.array_equal(first.rows, second.rows)
    )


@given(
    lengths=st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), min_size=1, max_size=60),
    tokens=st.integers(1, 200),
    world_size=st.integers(1, 5),
    seed=st.integers(0, 2**40),
)
@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])
def test_the_ranks_share_the_rows_of_every_batch_of_one_process(
    lengths: list[tuple[int, int]], tokens: int, world_size: int, seed: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    store = make(tmp_path_factory.mktemp("any") / "store", lengths)
    if len(store) < world_size:
        with pytest.raises(RegardError, match="too few"):
            Batches(store, tokens, seed, 0, world_size)
        return
    whole = epoch(Batches(store, tokens, seed))
    ranks = [epoch(Batches(store, tokens, seed, rank, world_size)) for rank in range(world_size)]
    for batch, *shares in zip(whole, *ranks, strict=True):
        rows = [row for share in shares if not share.stands_in for row in share.rows.tolist()]
        assert rows == batch.rows.tolist()
        assert all(len(share) == 1 for share in shares if share.stands_in)
        sizes = [0 if share.stands_in else len(share) for share in shares]
        assert max(sizes) - min(sizes) <= 1


@given(steps=st.lists(st.tuples(st.integers(1, 5), st.integers(1, 30)), min_size=1, max_size=6))
@settings(deadline=None, max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_other_numbers_of_processes_continue_after_any_cursor(store: TokenStore, steps: list[tuple[int, int]]) -> None:
    """Resumed by 4, 1 or 2 processes, a run skips no example and repeats none."""
    cursor, seen = Cursor(), []
    for world_size, count in steps:
        ranks = [Batches(store, 256, 7, rank, world_size).after(cursor) for rank in range(world_size)]
        for shares in islice(zip(*ranks, strict=True), count):
            seen.append([int(row) for share, _ in shares if not share.stands_in for row in share.rows])
            assert len({after for _, after in shares}) == 1
            cursor = shares[0][1]
    alone = [batch.rows.tolist() for batch, _ in islice(Batches(store, 256, 7).after(), len(seen))]
    assert seen == alone


def test_every_pair_comes_exactly_once_an_epoch(store: TokenStore) -> None:
    for number in range(3):
        rows = np.concatenate([batch.rows for batch in epoch(Batches(store, 512, 1), number)])
        assert sorted(rows.tolist()) == list(range(len(store)))
    rows = np.concatenate([batch.rows for batch in Batches(store, 512, 1).once()])
    assert sorted(rows.tolist()) == list(range(len(store)))


def test_a_batch_holds_its_pairs_between_special_tokens(store: TokenStore) -> None:
    for batch in islice((batch for batch, _ in Batches(store, 512, 1).after()), 20):
        assert batch.source.dtype == batch.target.dtype == torch.int64
        for place, row in enumerate(batch.rows):
            source, target = (ids.tolist() for ids in store[int(row)])
            padding = batch.source.shape[1] - len(source) - 1
            assert batch.source[place].tolist() == [*source, EOS, *[PAD] * padding]
            padding = batch.target.shape[1] - len(target) - 2
            assert batch.target[place].tolist() == [BOS, *target, EOS, *[PAD] * padding]
        assert torch.equal(batch.inputs, batch.target[:, :-1])
        assert torch.equal(batch.outputs, batch.target[:, 1:])


@pytest.mark.parametrize(("rank", "world_size"), [(0, 1), (0, 3), (2, 3)])
def test_the_order_is_a_pure_function_of_its_arguments(store: TokenStore, rank: int, world_size: int) -> None:
    first, second = (epoch(Batches(store, 256, 7, rank, world_size), 4) for _ in range(2))
    assert all(same(a, b) for a, b in zip(first, second, strict=True))


@given(position=st.integers(0, 150))
@settings(deadline=None, max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_continued_is_uninterrupted(store: TokenStore, position: int) -> None:
    uninterrupted = islice(Batches(store, 1024, 3).after(), 160)
    *_, (_, cursor) = islice(uninterrupted, position + 1)
    saved = json.loads(json.dumps(asdict(cursor)))
    continued = Batches(store, 1024, 3).after(Cursor(**saved))
    for (a, here), (b, there) in zip(uninterrupted, continued, strict=False):
        assert same(a, b) and here == there


def test_a_cursor_at_the_end_of_an_epoch_goes_on_with_the_next(store: TokenStore) -> None:
    batches = Batches(store, 512, 1)
    batch, cursor = next(batches.after(Cursor(0, batches.per_epoch(0))))
    assert cursor == Cursor(1, 1)
    assert same(batch, epoch(batches, 1)[0])


def test_epochs_and_seeds_differ_in_order_and_in_company(store: TokenStore) -> None:
    def companies(seed: int, number: int) -> list[frozenset[int]]:
        return [frozenset(batch.rows.tolist()) for batch in epoch(Batches(store, 512, seed), number)]

    first, later, other = companies(1, 0), companies(1, 1), companies(2, 0)
    for changed in (later, other):
        assert first != changed
        assert len(set(first) & set(changed)) < len(first) / 10


def test_ranks_work_on_batches_of_like_length_at_the_same_time(store: TokenStore) -> None:
    ranks = [epoch(Batches(store, 256, 1, rank, 2)) for rank in range(2)]
    widths = np.array([[batch.target.shape[1] for batch in batches] for batches in ranks])
    assert np.abs(widths[0] - widths[1]).mean() < 1.5


def test_a_million_pairs_are_ordered_and_cut_whole() -> None:
    rng = np.random.default_rng(0)
    count = 1_000_000  # benchmarks/store.py measures ten million
    lengths = rng.integers(1, 60, count, dtype=np.int32)
    order = bucket(lengths, lengths, rng)
    spans = cut(lengths[order] + 2, 4096)
    assert len(order) == count and spans[-1, 1] == count


@pytest.mark.skipif(not MULTI30K.exists(), reason=f"needs Multi30k in {MULTI30K}")
@pytest.mark.parametrize("tokens", [1024, 2048, 4096])
def test_padding_on_multi30k_is_under_ten_percent(multi30k: TokenStore, tokens: int) -> None:
    padding = total = 0
    for batch in epoch(Batches(multi30k, tokens, 1)):
        for side in (batch.source, batch.outputs):
            padding += int((side == PAD).sum())
            total += side.numel()
    assert padding / total < 0.1


@pytest.fixture(scope="module")
def multi30k(tmp_path_factory: pytest.TempPathFactory) -> TokenStore:
    train = {"source": str(MULTI30K / "train.en.gz"), "target": str(MULTI30K / "train.de.gz")}
    return prepare(RunConfig.model_validate({"data": {"train": train}}), tmp_path_factory.mktemp("multi30k")).train


def test_bpe_dropout_is_seeded_by_epoch_and_pair(tmp_path: Path) -> None:
    texts = [f"the quick brown fox number {n} jumps over the lazy dog" for n in range(60)]
    tokenizer, _ = train_tokenizers(Text(), lambda: [Pair(text, text) for text in texts])
    with StoreWriter(tmp_path / "store", tokenizer.size) as writer:
        writer.write(tokenizer.encode_batch(texts), tokenizer.encode_batch(texts))
    store, dropout = TokenStore(tmp_path / "store"), BpeDropout(tokenizer, 0.3)

    def cut_by_row(world_size: int, number: int) -> dict[int, list[int]]:
        ranks = [Batches(store, 400, 1, rank, world_size, (dropout, dropout)) for rank in range(world_size)]
        batches = [batch for rank in ranks for batch in epoch(rank, number)]
        return {
            int(row): [token for token in ids.tolist() if token != PAD]
            for batch in batches
            for row, ids in zip(batch.rows, batch.source, strict=True)
        }

    assert cut_by_row(1, 0) == cut_by_row(1, 0) == cut_by_row(2, 0)
    assert cut_by_row(1, 0) != cut_by_row(1, 1)
    for row, ids in cut_by_row(1, 0).items():
        assert tokenizer.decode(ids) == texts[row]


@given(st.lists(st.integers(1, 4), min_size=1, max_size=40), st.integers(1, 24))
@example([5, 5, 5], 10)  # two fill the budget exactly
@settings(deadline=None, max_examples=200)
def test_a_batch_fits_its_budget_and_takes_all_that_fits(lengths: list[int], tokens: int) -> None:
    spans = cut(np.asarray(lengths, dtype=np.int32), tokens).tolist()
    assert [place for start, end in spans for place in range(start, end)] == list(range(len(lengths)))
    for start, end in spans:
        assert end - start == 1 or (end - start) * max(lengths[start:end]) <= tokens
        if end < len(lengths):
            assert (end + 1 - start) * max(lengths[start : end + 1]) > tokens
