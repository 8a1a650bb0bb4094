"""Laws against independent code: what the grid's own laws (step = sweep, batch = single) cannot see."""

import math

import numpy as np
import pytest
import torch
from torch import nn

from regard.config.data import Cleaning
from regard.data.batches import Batches
from regard.data.cleaning import Fate
from regard.data.corpus import Pair
from regard.data.store import StoreWriter, TokenStore
from regard.data.survey import GRACE, survey
from regard.inspection.analyses.identify.effective import Mixed
from regard.inspection.analyses.probe.codelength import blocks, online_code
from regard.inspection.probes import Examples, Probes, train_probes
from regard.metrics.cider import Cider
from regard.models import build
from regard.models.encoders import TransformerEncoderLayer
from regard.nn.attention import Attention, KeyValues
from regard.search.alignment import word_alignment
from regard.training.ema import MovingAverage
from tests.cells import VOCABULARY, cell

CLOSE = {"atol": 1e-5, "rtol": 1e-4}
D = 16


@pytest.mark.parametrize("place", ["pre", "post"])
def test_every_norm_has_the_epsilon_of_its_cell(place):
    torch.manual_seed(0)
    how = {"kind": "transformer", "norm_place": place, "feed_forward": 24, "layers": 1}
    small = cell(encoder=how, decoder=how, attention={"heads": 2}, norm_epsilon=0.1)
    theirs = nn.TransformerEncoderLayer(D, 2, 24, 0.0, batch_first=True, norm_first=place == "pre", layer_norm_eps=0.1)
    ours = TransformerEncoderLayer(small, small.encoder).eval()
    weights, biases = theirs.self_attn.in_proj_weight.chunk(3), theirs.self_attn.in_proj_bias.chunk(3)
    for linear, weight, bias in zip(
        (ours.attention.query, ours.attention.key, ours.attention.value), weights, biases, strict=True
    ):
        linear.weight.data.copy_(weight)
        linear.bias.data.copy_(bias)
    ours.attention.out.load_state_dict(theirs.self_attn.out_proj.state_dict())
    ours.feed_forward.inner.load_state_dict(theirs.linear1.state_dict())
    ours.feed_forward.outer.load_state_dict(theirs.linear2.state_dict())
    states = 0.05 * torch.randn(2, 5, D)
    torch.testing.assert_close(ours(states, None), theirs(states), **CLOSE)
    model = build(small, VOCABULARY, VOCABULARY)
    assert {norm.eps for norm in model.modules() if isinstance(norm, nn.LayerNorm)} == {0.1}


def test_attention_dropout_drops_its_share_of_weights_in_training_only():
    torch.manual_seed(0)
    layer = Attention(query_width=D, memory_width=D, heads=2, score="scaled-dot", dropout=0.25)
    # Eight equal weights, and values that are one-hot: an output shows which weights were dropped.
    memory = KeyValues(torch.zeros(1, 2, 8, 8), torch.eye(8).expand(1, 2, 8, 8))
    seen = []
    layer.head_outputs.watcher = lambda found: seen.append(found) or found
    layer.train()
    for _ in range(400):
        layer(torch.zeros(1, 1, D), memory)
    outputs = torch.stack(seen)
    assert not torch.equal(outputs[0], outputs[1]) and len(torch.unique(outputs.flatten(1), dim=0)) > 300
    assert (outputs == 0).float().mean().item() == pytest.approx(0.25, abs=0.02)
    torch.testing.assert_close(outputs[outputs != 0], torch.full_like(outputs[outputs != 0], 1 / 8 / 0.75), **CLOSE)
    layer.eval()
    layer(torch.zeros(1, 1, D), memory)
    torch.testing.assert_close(seen[-1], torch.full_like(seen[-1], 1 / 8))


def test_a_planted_permutation_comes_back_as_the_alignment():
    order = [2, 0, 3, 1]
    weights = torch.full((5, 5), 0.02)  # the last row and column are the end symbols
    for target, source in enumerate(order):
        weights[target, source] = 0.9
    weights[4, 4] = 0.9
    assert word_alignment(weights, [0, 1, 2, 3], [0, 1, 2, 3]) == tuple((s, t) for t, s in enumerate(order))
    # two tokens a word: the weight of a word is that of its tokens together
    pieces = torch.zeros(4, 4)
    pieces[:, 2:] = 0.45
    pieces[:, 0] = 0.5
    assert word_alignment(pieces, [0, 1, 2, 2], [0, 0, 1, 1]) == ((2, 0), (2, 1))


def test_a_moving_average_forgets_its_start_by_its_warm_up():
    model = nn.Linear(1, 1, bias=False)
    model.weight.data.fill_(0.0)
    average = MovingAverage(model, 0.999)
    expected = 0.0
    for step in range(1, 30):
        model.weight.data.fill_(float(step))
        average.update(step)
        decay = min(0.999, (1 + step) / (10 + step))
        expected = decay * expected + (1 - decay) * step
    assert average.shadow["weight"].item() == pytest.approx(expected, rel=1e-5)
    assert average.shadow["weight"].item() > 15  # with a decay of 0.999 alone it would still be near 0.4


def test_no_two_epochs_have_the_same_order_of_batches(tmp_path):
    random = np.random.default_rng(0)
    with StoreWriter(tmp_path / "store", 50) as writer:
        rows = [random.integers(6, 50, int(random.integers(3, 9))).tolist() for _ in range(400)]
        writer.write(rows, rows)
    batches = Batches(TokenStore(tmp_path / "store"), 100, seed=1)
    stream, epochs = batches.after(), {}
    for batch, cursor in stream:
        if cursor.epoch > 2:
            break
        epochs.setdefault(cursor.epoch, []).append(tuple(sorted(batch.rows.tolist())))
    first, second, third = (epochs[number] for number in (0, 1, 2))
    for one in (first, second, third):
        assert sorted(row for batch in one for row in batch) == list(range(400))
    assert first != second != third and set(first) != set(second)


@pytest.mark.parametrize(("longer", "kept"), [(0, True), (1, False)])
def test_the_ratio_of_lengths_is_kept_exactly_at_its_boundary(longer, kept):
    ratio, short = 3.0, 10
    long = round(ratio * (short + GRACE)) - GRACE + longer
    fates, _ = survey(
        [Pair("a" * short, "b" * long), Pair("c" * 20, "d" * 20), Pair("e" * 20, "f" * 20)],
        Cleaning(max_ratio=ratio),
        held_out=0,
        tested=0,
        seed=1,
        texts=("source", "target"),
    )
    assert Fate(fates[0]) == (Fate.TRAIN if kept else Fate.RATIO)


def test_repeating_a_shared_phrase_never_raises_cider():
    references = [["a red dog runs"], ["two men talk"], ["the sea is blue"]]
    others = ["two men talk", "the sea is blue"]
    scores = []
    for said in ("a red dog runs", "a red dog runs a red dog runs", "red dog red dog red dog"):
        metric = Cider()
        scores.append(metric.statistics([said, *others], references)[0, 0])
    assert scores[0] > scores[1] > 0 and scores[0] > scores[2]
    clipped = Cider().statistics(["dog dog dog dog", *others], references)[0, 0]
    single = Cider().statistics(["dog x y z", *others], references)[0, 0]
    assert 0 < clipped < single  # three more of a word that is wanted once are worth less than three wrong words


def test_a_singular_value_far_below_the_largest_does_not_count():
    torch.manual_seed(0)
    left = torch.linalg.qr(torch.randn(8, 8, dtype=torch.float64))[0]
    right = torch.linalg.qr(torch.randn(4, 4, dtype=torch.float64))[0]
    for tail, rank in ((1e-9, 3), (1e-3, 4)):
        rows = left[:, :4] @ torch.diag(torch.tensor([1.0, 0.5, 0.2, tail], dtype=torch.float64)) @ right
        assert Mixed(rows, 16).span().shape[1] == rank


def test_random_labels_cannot_be_coded_in_less_than_their_entropy():
    torch.manual_seed(0)
    count, width, labels = 600, 40, 4
    words = Examples(torch.randn(1, count, width), torch.randint(0, labels, (count,)))
    starts = list(range(0, count, 10))
    # Probes stop by the words themselves, so that nothing keeps them from learning by heart what they are trained on.
    last = train_probes(words, words, labels, None)
    code = online_code(words, words, blocks(starts, count), labels, None, last, starts=starts)
    assert code.bits[0] / count > 0.97 * math.log2(labels)


def test_a_probe_keeps_the_epoch_that_its_stopping_set_likes_best():
    torch.manual_seed(0)
    train = Examples(torch.randn(2, 300, 20), torch.randint(0, 3, (300,)))
    # The second layer stops by examples that contradict what it is trained on: its best epoch is none at all.
    stop = Examples(torch.stack([train.states[0], train.states[1]]), train.labels)
    stop.states[1] = -train.states[1]
    untrained, probes = Probes(2, 20, 3, None), train_probes(train, stop, 3, None)
    before, after = untrained.losses(stop).mean(1), probes.losses(stop).mean(1)
    assert after[0] < 0.95 * before[0]
    torch.testing.assert_close(after[1], before[1])
