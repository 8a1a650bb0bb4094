"""Laws of training: the objective, its cures for exposure bias, schedules, and the update."""

import math
from itertools import pairwise
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.config.loading import from_mapping
from regard.config.training import Corruption, Exposure, Optimizer, Schedule, ScheduledSampling
from regard.foundation.device import choose_device, choose_precision
from regard.foundation.errors import RegardError, UsageError
from regard.foundation.weights import read_weights
from regard.objectives import objective
from regard.objectives.exposure import corrupt, drop_words, expose, make_mix, share_of_truth
from regard.objectives.objective import cross_entropy
from regard.runs.checkpoints import Checkpoints
from regard.tasks.preparation import prepare
from regard.text.specials import BOS, EOS, PAD, SPECIALS, UNK
from regard.training import optimizer
from regard.training.ahead import Ahead
from regard.training.continuation import check_continuation
from regard.training.ema import MovingAverage
from regard.training.loop import train
from regard.training.muon import orthogonal
from regard.training.outcome import mean_weights
from regard.training.schedule import Plateau, learning_rate
from regard.training.trainer import Trainer
from regard.training.view import View

VOCABULARY = 50


def tiny(*overrides, **training):
    settings = {
        "data": {"train": {"generate": "copy", "size": 300}, "held_out": 20},
        "text": {"tokenizer": {"kind": "words"}},
        "model": {"width": 16, "encoder": {"kind": "rnn"}, "decoder": {"kind": "rnn"}},
        "training": {"steps": 12, "validate_every": 6, "checkpoint_every": 6, "batch_tokens": 200, "device": "cpu"}
        | training,
    }
    return from_mapping(settings, overrides)


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    return prepare(tiny(), tmp_path_factory.mktemp("run"))


def trainer(prepared, config):
    task = prepared.task.configured(config)
    return Trainer(config, task, task.batches(prepared.train, training=True), device=torch.device("cpu"))


class TestObjective:
    @settings(max_examples=30, deadline=None)
    @given(
        smoothing=st.sampled_from([0.0, 0.1, 0.5]),
        bias=st.booleans(),
        chunk=st.integers(1, 60),
        scale=st.floats(0.1, 3),
        seed=st.integers(0, 1000),
    )
    def test_fused_loss_is_the_plain_loss_in_values_and_gradients(self, smoothing, bias, chunk, scale, seed):
        random = torch.Generator().manual_seed(seed)
        states = torch.randn(3, 5, 4, dtype=torch.float64, generator=random, requires_grad=True)
        weight = torch.randn(11, 4, dtype=torch.float64, generator=random, requires_grad=True)
        offset = torch.randn(11, dtype=torch.float64, generator=random, requires_grad=True) if bias else None
        targets = torch.randint(0, 11, (3, 5), generator=random)
        inputs = [states, weight] + ([offset] if bias else [])
        before, objective.CHUNK_ELEMENTS = objective.CHUNK_ELEMENTS, chunk * 11
        try:
            loss = cross_entropy(states, weight, offset, targets, smoothing=smoothing, scale=scale)
            fused = torch.autograd.grad(3 * loss.smoothed, inputs)
        finally:
            objective.CHUNK_ELEMENTS = before
        logits = F.linear(states, weight, offset).flatten(0, 1)
        flat = targets.flatten()
        expected = F.cross_entropy(logits, flat, ignore_index=PAD, label_smoothing=smoothing, reduction="sum")
        plain = torch.autograd.grad(3 * scale * expected, inputs)
        torch.testing.assert_close(loss.smoothed, scale * expected)
        torch.testing.assert_close(loss.nll, F.cross_entropy(logits, flat, ignore_index=PAD, reduction="sum"))
        assert loss.tokens == int((targets != PAD).sum())
        for ours, theirs in zip(fused, plain, strict=True):
            torch.testing.assert_close(ours, theirs)

    def test_tokens_that_are_never_produced_have_no_part_in_smoothing(self):
        random = torch.Generator().manual_seed(2)
        states = torch.randn(9, 4, dtype=torch.float64, generator=random, requires_grad=True)
        weight = torch.randn(11, 4, dtype=torch.float64, generator=random, requires_grad=True)
        bias = torch.randn(11, dtype=torch.float64, generator=random)
        bias[[4, 7]] = -100.0
        bias.requires_grad_()
        targets = torch.tensor([1, 2, 3, 5, 6, 8, 9, 10, 1])
        loss = cross_entropy(states, weight, bias, targets, smoothing=0.2)
        fused = torch.autograd.grad(loss.smoothed, [states, weight, bias])
        logits = F.linear(states, weight, bias)
        possible = [token for token in range(11) if token not in (4, 7)]
        true = logits.gather(1, targets[:, None]).squeeze(1)
        expected = (logits.logsumexp(1) - 0.8 * true - 0.2 * logits[:, possible].mean(1)).sum()
        torch.testing.assert_close(loss.smoothed, expected)
        for ours, theirs in zip(fused, torch.autograd.grad(expected, [states, weight, bias]), strict=True):
            torch.testing.assert_close(ours, theirs)

    def test_only_padding_costs_nothing(self):
        states = torch.randn(2, 3, 4, requires_grad=True)
        loss = cross_entropy(states, torch.randn(7, 4), None, torch.zeros(2, 3, dtype=torch.long))
        loss.smoothed.backward()
        assert loss.smoothed.item() == 0 and loss.tokens == 0 and not states.grad.any()

    def test_half_precision_agrees_with_single(self):
        states, weight = torch.randn(40, 16), torch.randn(30, 16, requires_grad=True)
        targets = torch.randint(1, 30, (40,))
        exact = torch.autograd.grad(cross_entropy(states, weight, None, targets, smoothing=0.1).smoothed, weight)[0]
        rough = torch.autograd.grad(
            cross_entropy(states.bfloat16(), weight, None, targets, smoothing=0.1).smoothed, weight
        )[0]
        assert rough.dtype == torch.float32
        assert (exact - rough).norm() / exact.norm() < 0.02


def sentences(rows=64, length=12, seed=0):
    """Targets as batches have them: BOS, words, EOS, padding."""
    random = torch.Generator().manual_seed(seed)
    target = torch.zeros(rows, length + 2, dtype=torch.long)
    for row in target:
        words = int(torch.randint(1, length + 1, (), generator=random))
        row[0] = BOS
        row[1 : words + 1] = torch.randint(len(SPECIALS), VOCABULARY, (words,), generator=random)
        row[words + 1] = EOS
    return target[:, :-1], target[:, 1:]


def words(tokens):
    return (tokens != PAD) & (tokens != BOS) & (tokens != EOS)


class TestExposure:
    @pytest.mark.parametrize("kind", ["linear", "exponential", "inverse-sigmoid"])
    def test_the_share_of_truth_falls_from_one_towards_its_floor(self, kind):
        config = ScheduledSampling(kind=kind, floor=0.3)
        shares = [share_of_truth(config, step, 100) for step in range(101)]
        assert shares[0] == pytest.approx(1)
        assert all(later <= sooner for sooner, later in pairwise(shares))
        assert shares[-1] == pytest.approx(0.3 if kind == "linear" else 0.65)
        faster = ScheduledSampling(kind=kind, floor=0.3, speed=50)
        assert share_of_truth(faster, 100, 100) == pytest.approx(0.3, abs=1e-6)

    def test_without_scheduled_sampling_all_words_are_true(self):
        assert share_of_truth(ScheduledSampling(), 70, 100) == 1
        assert make_mix(1.0, torch.Generator()) is None

    @pytest.mark.parametrize("shape", [(4000,), (100, 40)])
    def test_mixed_in_words_come_from_the_models_own_distribution(self, shape):
        random = torch.Generator().manual_seed(3)
        scores = torch.tensor([9.0, 9, 9, 0, 9, 9, 2, 1, 0]).expand(*shape, 9)
        true = torch.full(shape, 7)
        mixed = make_mix(0.0, random)(scores, true).flatten()
        expected = torch.tensor([0.0, 2, 1, 0]).softmax(0)  # UNK and three words; the other specials are never said
        counts = torch.bincount(mixed, minlength=9)
        assert not counts[[PAD, BOS, EOS, 4, 5]].any()
        torch.testing.assert_close(counts[[UNK, 6, 7, 8]] / counts.sum(), expected, atol=0.03, rtol=0)

    def test_mixing_keeps_its_share_of_true_words_and_all_padding(self):
        inputs, _ = sentences(rows=400)
        own = make_mix(0.75, torch.Generator().manual_seed(0))(torch.zeros(*inputs.shape, VOCABULARY), inputs)
        assert torch.equal(own[~words(inputs)], inputs[~words(inputs)])
        kept = (own == inputs)[words(inputs)].float().mean().item()
        assert kept == pytest.approx(0.75 + 0.25 / (VOCABULARY - 5), abs=0.03)

    def test_word_dropout_hides_words_and_nothing_else(self):
        inputs, _ = sentences(rows=400)
        dropped = drop_words(inputs, 0.3, generator=torch.Generator().manual_seed(0))
        changed = dropped != inputs
        assert not changed[~words(inputs)].any() and (dropped[changed] == UNK).all()
        assert changed[words(inputs)].float().mean().item() == pytest.approx(0.3, abs=0.03)

    @pytest.mark.parametrize("kind", ["replace", "swap", "delete"])
    def test_corruption_never_touches_bos_nor_introduces_specials(self, kind):
        inputs, outputs = sentences()
        random = torch.Generator().manual_seed(0)
        damaged, asked = corrupt(inputs, outputs, Corruption(**{kind: 0.4}), vocabulary=VOCABULARY, generator=random)
        assert (damaged[:, 0] == BOS).all()
        assert (damaged != inputs).any()
        assert ((damaged == PAD) | (damaged >= len(SPECIALS)) | (damaged == BOS) | (damaged == EOS)).all()
        for before, after in zip(inputs, damaged, strict=True):
            real_before, real_after = before[words(before)].tolist(), after[words(after)].tolist()
            assert len(real_after) <= len(real_before)
            if kind == "swap":
                assert sorted(real_before) == sorted(real_after)
            if kind == "delete":
                rest = iter(real_before)
                assert all(word in rest for word in real_after)  # a subsequence
        assert set(asked.flatten().tolist()) <= set(outputs.flatten().tolist())

    @pytest.mark.parametrize("kind", ["swap", "delete"])
    def test_damage_never_shows_a_place_its_own_answer(self, kind):
        rows = torch.arange(10, 20).repeat(200, 1)  # all words of a row differ
        target = torch.cat([torch.full((200, 1), BOS), rows, torch.full((200, 1), EOS)], 1)
        inputs, outputs = corrupt(
            target[:, :-1],
            target[:, 1:],
            Corruption(**{kind: 0.3}),
            vocabulary=VOCABULARY,
            generator=torch.Generator().manual_seed(1),
        )
        asked = outputs != PAD
        assert not (inputs == outputs)[asked].any()
        if kind == "delete":  # what is asked behind a word is still the word that follows it
            assert (outputs - inputs)[asked & words(inputs) & (outputs != EOS)].eq(1).all()

    def test_cures_compose_and_follow_from_the_generator(self):
        inputs, outputs = sentences()
        config = Exposure(word_dropout=0.2, corruption=Corruption(replace=0.1, swap=0.1, delete=0.1))
        results = [
            expose(inputs, outputs, config, vocabulary=VOCABULARY, generator=torch.Generator().manual_seed(5))
            for _ in range(2)
        ]
        assert torch.equal(results[0][0], results[1][0]) and torch.equal(results[0][1], results[1][1])

    def test_without_cures_nothing_changes(self):
        inputs, outputs = sentences()
        same = expose(inputs, outputs, Exposure(), vocabulary=VOCABULARY, generator=torch.Generator())
        assert same[0] is inputs and same[1] is outputs


class TestSchedule:
    @pytest.mark.parametrize("kind", ["inverse-sqrt", "cosine", "plateau", "constant"])
    def test_the_rate_rises_to_its_peak_at_the_end_of_warmup_and_never_beyond(self, kind):
        config = Schedule(kind=kind, warmup=10)
        rates = [learning_rate(config, 0.5, step, 100, Plateau()) for step in range(1, 101)]
        assert rates[9] == pytest.approx(0.5) and max(rates) == rates[9]
        assert all(rate == pytest.approx(0.05 * step) for step, rate in enumerate(rates[:9], start=1))
        assert all(later <= sooner for sooner, later in pairwise(rates[9:]))

    def test_inverse_sqrt_halves_when_the_step_quadruples(self):
        config = Schedule(warmup=10)
        assert learning_rate(config, 1, 40, 100, Plateau()) == pytest.approx(0.5)

    def test_cosine_ends_at_zero(self):
        assert learning_rate(Schedule(kind="cosine", warmup=10), 1, 100, 100, Plateau()) == pytest.approx(0)

    def test_warmup_of_nothing_begins_at_the_peak(self):
        assert learning_rate(Schedule(warmup=0), 1, 1, 100, Plateau()) == 1

    def test_plateau_falls_after_patience_and_waits_anew(self):
        config = Schedule(kind="plateau", factor=0.5, patience=2, warmup=0)
        state, factors = Plateau(), []
        for loss in (3.0, 2.0, 2.5, 2.5, 2.5, 2.5, 1.0):
            state = state.after(loss, config)
            factors.append(state.factor)
        assert factors == [1, 1, 1, 0.5, 0.5, 0.25, 0.25]
        assert learning_rate(config, 1, 5, 100, state) == 0.25
        assert Plateau().after(math.nan, config).after(1.0, config).best == 1.0


class TestUpdate:
    def test_biases_norms_and_embeddings_do_not_decay(self, prepared):
        model = trainer(prepared, tiny()).model
        groups = optimizer.build(Optimizer(weight_decay=0.1, learning_rate=0.01), model).param_groups
        decaying = {id(parameter) for parameter in groups[0]["params"]}
        assert groups[0]["weight_decay"] == 0.1 and groups[1]["weight_decay"] == 0
        for name, parameter in model.named_parameters():
            assert (id(parameter) in decaying) == (parameter.dim() > 1 and "embedding" not in name), name

    @pytest.mark.parametrize("shape", [(6, 6), (4, 9), (9, 4), (1, 5)])
    def test_muon_keeps_a_matrix_directions_and_levels_their_lengths(self, shape):
        random = torch.Generator().manual_seed(1)
        given = torch.randn(3, *shape, generator=random, dtype=torch.float64)
        u, lengths, v = torch.linalg.svd(given, full_matrices=False)
        lengths = 0.3 + lengths / lengths.amax(-1, keepdim=True)  # none so small that the rounds leave it behind
        given = 1e-4 * u @ torch.diag_embed(lengths) @ v
        found = orthogonal(given)
        inside = u.mT @ found @ v.mT
        torch.testing.assert_close(inside, torch.diag_embed(inside.diagonal(dim1=1, dim2=2)), atol=1e-6, rtol=0)
        assert inside.diagonal(dim1=1, dim2=2).min() > 0.6 and inside.diagonal(dim1=1, dim2=2).max() < 1.3
        assert not orthogonal(torch.zeros(1, *shape)).any()

    def test_muon_moves_along_the_mean_gradient_one_step_ahead(self):
        random = torch.Generator().manual_seed(1)
        linear = torch.nn.Linear(9, 4, bias=False)
        muon = optimizer.build(Optimizer(kind="muon", learning_rate=0.1, weight_decay=0.5), linear)
        expected, mean = linear.weight.detach().clone(), torch.zeros(4, 9)
        for _ in range(3):
            gradient = torch.randn(4, 9, generator=random)
            linear.weight.grad = gradient.clone()
            muon.step()
            mean = 0.95 * mean + 0.05 * gradient
            ahead = 0.95 * mean + 0.05 * gradient  # Nesterov's
            expected = (1 - 0.1 * 0.5) * expected - 0.1 * 0.2 * math.sqrt(9) * orthogonal(ahead[None])[0]
            torch.testing.assert_close(linear.weight.detach(), expected)

    def test_muon_alone_needs_no_adamw(self, prepared):
        one = trainer(prepared, tiny("training.optimizer.kind=muon"))
        inner = optimizer.matrices(one.model)
        for parameter in one.model.parameters():
            parameter.requires_grad_(any(parameter is each for each in inner))
        before = [parameter.detach().clone() for parameter in inner]
        one.optimizer = optimizer.build(Optimizer(kind="muon", learning_rate=0.01), one.model)
        one.update()
        one.close()
        assert all(not torch.equal(was, now) for was, now in zip(before, inner, strict=True))

    def test_muon_leaves_all_but_inner_matrices_to_adamw(self, prepared):
        models = {}
        for kind in ("adamw", "muon"):
            one = trainer(prepared, tiny(f"training.optimizer.kind={kind}", "training.optimizer.learning_rate=0.01"))
            before = {name: parameter.detach().clone() for name, parameter in one.model.named_parameters()}
            one.update()
            one.close()
            models[kind] = {name: (p.detach() - before[name]) for name, p in one.model.named_parameters()}
        inner = {name for name in models["muon"] if name.endswith((".weight", "_weight")) and "embedding" not in name}
        inner -= {name for name, moved in models["muon"].items() if moved.dim() != 2}
        assert len(inner) > 4
        for name, moved in models["muon"].items():
            if name not in inner:
                torch.testing.assert_close(moved, models["adamw"][name], rtol=1e-4, atol=1e-8, msg=name)
            elif moved.any():
                assert not torch.allclose(moved, models["adamw"][name], rtol=1e-2), name

    def test_accumulating_batches_is_one_large_batch(self, prepared):
        whole, parts = (
            trainer(prepared, tiny("model.dropout=0", f"training.accumulate={n}", "training.optimizer.kind=sgd"))
            for n in (1, 3)
        )
        batches = [batch for batch, _ in zip(whole.batches.after(), range(3), strict=False)]
        tokens = sum(int((batch.outputs != PAD).sum()) for batch, _ in batches)
        loss = sum(
            F.cross_entropy(
                whole.model(batch.source, batch.inputs).flatten(0, 1),
                batch.outputs.flatten(),
                ignore_index=PAD,
                label_smoothing=0.1,
                reduction="sum",
            )
            for batch, _ in batches
        )
        gradients = torch.autograd.grad(loss / tokens, list(whole.model.parameters()))
        norm = torch.stack([gradient.norm() for gradient in gradients]).norm()
        parts.update()
        parts.close()
        assert parts.progress.window.loss == pytest.approx(float(loss.detach()), rel=1e-4)
        assert parts.progress.window.norm == pytest.approx(float(norm), rel=1e-4)
        assert parts.progress.tokens == tokens

    @pytest.mark.parametrize("clip", [0.0, 0.01, 1000.0])
    def test_no_step_is_larger_than_clipping_allows_and_none_is_made_larger(self, prepared, clip):
        config = tiny(
            "training.optimizer.kind=sgd", "training.optimizer.learning_rate=1", "training.schedule.kind=constant",
            "training.schedule.warmup=0", f"training.clip={clip}",
        )  # fmt: skip
        one = trainer(prepared, config)
        before = [parameter.detach().clone() for parameter in one.model.parameters()]
        one.update()
        one.close()
        moves = [(a.detach() - b).norm() for a, b in zip(one.model.parameters(), before, strict=True)]
        expected = min(clip or math.inf, one.progress.window.norm)
        assert float(torch.stack(moves).norm()) == pytest.approx(expected, rel=1e-3)

    def test_a_step_that_is_not_finite_is_skipped_and_counted(self, prepared):
        one = trainer(prepared, tiny())
        one.update()
        healthy = one.model.output_bias.detach().clone()
        with torch.no_grad():
            one.model.output_bias[7] = math.nan
        damaged = [parameter.detach().clone() for parameter in one.model.parameters()]
        one.update()
        assert one.progress.skipped == one.progress.bad_in_row == 1 and one.progress.step == 2
        for parameter, before in zip(one.model.parameters(), damaged, strict=True):
            torch.testing.assert_close(parameter.detach(), before, equal_nan=True, rtol=0, atol=0)
        with torch.no_grad():
            one.model.output_bias.copy_(healthy)
        one.update()
        one.close()
        assert one.progress.skipped == 1 and one.progress.bad_in_row == 0

    def test_too_many_bad_steps_stop_the_run_with_advice(self, tmp_path, monkeypatch):
        monkeypatch.setattr(Trainer, "_gradient_norm", lambda self: torch.tensor(math.inf))
        with pytest.raises(RegardError, match=r"(?s)5 steps in a row.*learning_rate.*warmup.*data"):
            train(tiny(max_bad_steps=5), tmp_path / "run", view=View())
        assert (tmp_path / "run" / "checkpoints" / "step-00000005").is_dir()

    def test_the_moving_average_follows_the_weights(self):
        model = torch.nn.Linear(2, 2)
        average = MovingAverage(model, 0.9)
        start = model.weight.detach().clone()
        with torch.no_grad():
            model.weight += 1
        average.update(1000)
        torch.testing.assert_close(average.shadow["weight"], start + 0.1)
        with average.applied():
            torch.testing.assert_close(model.weight.detach(), start + 0.1)
        torch.testing.assert_close(model.weight.detach(), start + 1)

    def test_what_is_made_ahead_comes_in_order_with_its_errors(self):
        def items():
            yield from range(20)
            raise RegardError("no more")

        ahead = Ahead(items())
        assert [next(ahead) for _ in range(20)] == list(range(20))
        with pytest.raises(RegardError, match="no more"):
            next(ahead)
        endless = Ahead(iter(int, 1))
        next(endless)
        endless.close()
        assert not endless._thread.is_alive()


class TestOutcome:
    def test_averaged_weights_are_the_mean_in_their_own_precision(self):
        parts = [{"a": torch.full((2,), value), "b": torch.tensor([value])} for value in (1.0, 2.0, 6.0)]
        mean = mean_weights(iter(parts))
        assert mean["a"].tolist() == [3, 3] and mean["b"].dtype == torch.float32
        with pytest.raises(RegardError, match="no checkpoint"):
            mean_weights([])

    @pytest.mark.parametrize(("average", "ema"), [(0, 0.0), (3, 0.0), (0, 0.5), (2, 0.5)])
    def test_the_result_is_the_best_or_the_average_and_speaks_with_the_moving_average(self, tmp_path, average, ema):
        config = tiny(average=average, ema=ema, keep_last=1, steps=8, checkpoint_every=2, validate_every=4)
        outcome = train(config, tmp_path / "run", view=View())
        checkpoints = Checkpoints(tmp_path / "run" / "checkpoints")
        steps = [8 - 2 * back for back in reversed(range(average))] or [outcome.run.info["best"]["step"]]
        parts = [checkpoints.load(step) for step in steps]
        key = "decoder.embedding.weight"
        weights = [part.training[f"average/{key}"] if ema else part.model[key] for part in parts]
        final = read_weights(tmp_path / "run" / "model.safetensors")[key]
        torch.testing.assert_close(final, torch.stack(weights).mean(0))
        assert ("average of the last" in outcome.choice) == bool(average)
        assert ("moving average" in outcome.choice) == bool(ema)


class TestSettings:
    def test_absent_devices_and_impossible_precision_are_refused(self):
        with pytest.raises(UsageError, match="not a device"):
            choose_device("gpu please")
        if not torch.cuda.is_available():
            with pytest.raises(UsageError, match="not on this machine"):
                choose_device("cuda")
        with pytest.raises(UsageError, match="float16"):
            choose_precision("float16", torch.device("cpu"))
        assert choose_precision("auto", torch.device("cpu")) == torch.float32

    def test_a_run_continues_with_other_steps_but_not_as_another_model(self):
        check_continuation(tiny(), tiny("training.steps=99", "training.optimizer.learning_rate=0.1", "decoding.beam=1"))
        for change in (
            "model.width=32",
            "data.held_out=5",
            "text.tokenizer.lower=true",
            "training.seed=2",
            "training.ema=0.9",
        ):
            with pytest.raises(UsageError, match=change.split("=")[0].replace(".", r"\.")):
                check_continuation(tiny(), tiny(change))

    def test_every_optimizer_schedule_and_option_trains(self, tmp_path):
        for number, options in enumerate(
            (
                ["training.optimizer.kind=sgd", "training.optimizer.momentum=0.9", "training.schedule.kind=plateau"],
                ["training.optimizer.kind=adam", "training.schedule.kind=cosine", "training.precision=bfloat16"],
                ["training.optimizer.kind=muon", "training.optimizer.weight_decay=0.1"],
                ["training.ema=0.9", "training.average=2", "training.tensorboard=true",
                 "training.early_stopping.metric=exact"],
            )
        ):  # fmt: skip
            outcome = train(tiny(*options), tmp_path / str(number), view=View())
            assert outcome.step == 12 and math.isfinite(outcome.validation["loss"])
            assert Path(outcome.run.directory / "model.safetensors").is_file()


def test_training_leaves_small_numbers_to_others_as_they_were(tmp_path):
    train(tiny(steps=2), tmp_path / "run", view=View())
    assert torch.tensor(1e-310, dtype=torch.float64) / 2 > 0
