"""sound → label and sound → text: training, use, evaluation and bad input, on tones that stand for words."""

import io
import json
import math
import os
import threading
import zipfile
from copy import deepcopy
from dataclasses import dataclass
from itertools import groupby, permutations, product
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import soundfile
import torch
import yaml

import regard
from regard.cli import main
from regard.cli.transcribe import CHUNK
from regard.config.loading import dump, from_mapping, load
from regard.foundation.errors import RegardError, UsageError
from regard.inspection.analyses.attention.spectrogram import draw_listening, draw_spectrogram
from regard.inspection.analyses.reference.compute import reference
from regard.metrics.scoring import score_text, utility
from regard.models import build
from regard.models.memory import Memory
from regard.nn.subsampling import (
    LARGEST_RAISE,
    STRETCH,
    Subsampling,
    even_loudness,
    pad_frames,
    standardise_bands,
    subsampled_length,
)
from regard.runs.run import Run
from regard.search import Constraints, Search
from regard.search.ctc import CtcSteps
from regard.search.steps import ModelSteps, Source
from regard.tasks.bad_inputs import BadInputs
from regard.tasks.outputs.transcript import ctc_loss
from regard.tasks.preparation import prepare
from regard.tasks.results import Label, Text
from regard.tasks.training_batch import TrainingPoint
from regard.text.specials import BOS, EOS, PAD, SPECIALS
from regard.training.loop import train
from regard.training.view import View

WORDS = {"low": 400, "mid": 1000, "high": 2200}
BODIES = [
    {"kind": "rnn"},
    {"kind": "rnn", "layers": 2, "cell": "lstm", "direction": "backward"},
    {"kind": "transformer", "layers": 2},
    {"kind": "conv", "layers": 2},
    {"kind": "bag"},
]


def tone(frequency, seconds, rate=8000, seed=0):
    random = np.random.default_rng(seed)
    samples = np.sin(2 * np.pi * frequency * np.arange(round(seconds * rate)) / rate)
    return (0.5 * samples + 0.01 * random.standard_normal(len(samples))).astype(np.float32)


@pytest.fixture(scope="module")
def recordings(tmp_path_factory):
    """Tones of two speakers; one of them was recorded at another sample rate."""
    before, directory = Path.cwd(), Path("recordings")
    os.chdir(tmp_path_factory.mktemp("here"))  # which examples are held out depends on their paths
    directory.mkdir()
    for place, (word, frequency) in enumerate(WORDS.items()):
        for number in range(24):
            speaker, rate = ("anna", 8000) if number % 2 else ("ben", 16_000)
            samples = tone(frequency + 9 * (number % 7), 0.1 + 0.01 * (number % 9), rate, 100 * place + number)
            soundfile.write(directory / f"{word}_{speaker}_{number}.wav", samples, rate)
    yield directory
    os.chdir(before)


ENCODER = {"kind": "sound", "rate": 8000, "bands": 16, "channels": 8, "max_seconds": 10}
TRAINING = {"device": "cpu", "optimizer": {"kind": "adamw", "learning_rate": 0.005}}


@pytest.fixture(scope="module")
def labels(recordings, tmp_path_factory):
    settings = {
        "task": {"kind": "sound-classification", "masks": 1},
        "data": {"train": {"spoken_words": str(recordings)}, "held_out": 7, "held_out_test": 7},
        "model": {"width": 16, "encoder": {**ENCODER, "body": {"kind": "conv", "layers": 1}}},
        "training": {**TRAINING, "steps": 80, "validate_every": 40, "batch_tokens": 100},
    }
    run = tmp_path_factory.mktemp("labels") / "run"
    train(from_mapping(settings), run, view=View())
    return run


@pytest.fixture(scope="module")
def speech(recordings, tmp_path_factory):
    settings = {
        "task": {"kind": "speech-recognition", "masks": 0, "speed": 0.05, "noise": 40},
        "data": {
            "train": {"spoken_words": str(recordings), "min_words": 1, "max_words": 3, "size": 400},
            "held_out": 30,
            "held_out_test": 30,
        },
        "text": {"tokenizer": {"kind": "words"}},
        "model": {
            "width": 32,
            "dropout": 0.0,
            "encoder": {**ENCODER, "body": {"kind": "conv", "layers": 2}},
            "decoder": {"kind": "rnn"},
            "join": {"kind": "attention", "order": "before"},
        },
        "training": {
            "device": "cpu",
            "optimizer": {"kind": "muon"},
            "schedule": {"kind": "cosine", "warmup": 20},
            "steps": 300,
            "validate_every": 150,
            "batch_tokens": 400,
        },
        "decoding": {"beam": 2, "max_length": 10},
    }
    run = tmp_path_factory.mktemp("speech") / "run"
    train(from_mapping(settings), run, view=View())
    return run


def test_sounds_are_classified_by_name_array_and_command_line(labels, recordings, capsys, tmp_path):
    assert Run.open(labels).info["result"]["test"]["accuracy"] == 100.0
    model, names = regard.load(labels), [str(recordings / f"{word}_anna_3.wav") for word in WORDS]
    assert model.loaded.task.output.loss_name == "nats per sound, before calibration"
    answers = model(names)
    assert [one.label for one in answers] == list(WORDS) and all(type(one) is Label for one in answers)
    samples, rate = soundfile.read(names[1])
    assert model(samples).probability == pytest.approx(answers[1].probability, abs=1e-5)
    assert model((samples, rate)).label == "mid" and model(recordings / "low_ben_2.wav").label == "low"
    (tmp_path / "in.txt").write_text("\n".join([*names[:2], "missing.wav"]) + "\n")
    assert main(["predict", str(labels), str(tmp_path / "in.txt"), "--json"]) == 1
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["label"] for line in lines] == ["low", "mid", None] and "missing.wav" in lines[2]["error"]
    with pytest.raises(UsageError, match=r"inputs\[1\] cannot be read: A sound must be"):
        model([names[0], {"not": "a sound"}])


def test_speech_is_written_down_and_judged_with_intervals(speech, capsys):
    result = Run.open(speech).info["result"]["test"]
    assert result["wer"] <= 5.0 and result["exact"] >= 90.0
    assert main(["evaluate", str(speech), "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["scores"]["wer"] == pytest.approx(result["wer"])
    assert facts["details"]["wer"]["low"] <= facts["scores"]["wer"] <= facts["details"]["wer"]["high"]
    card = (speech / "README.md").read_text()
    assert "A speech recogniser" in card and "regard transcribe" in card and "95 % intervals" in card


def test_a_resampled_rate_is_reported_once(speech, capsys, tmp_path):
    notes = json.loads((speech / "data" / "finished.json").read_text())["notes"]
    assert [note for note in notes if "16,000 Hz were resampled to 8,000 Hz" in note] == notes
    names = [str(tmp_path / f"{number}.wav") for number in range(3)]
    for name, rate in zip(names, (16_000, 16_000, 44_100), strict=True):
        soundfile.write(name, tone(1000, 0.15, rate), rate)
    many = [*names[:1] * CHUNK, *names[1:]]  # the last ones are read later
    assert main(["transcribe", str(speech), *many]) == 0
    out, err = capsys.readouterr()
    assert out == "mid\n" * len(many) and err.count("resampled") == 1 and "16,000, 44,100 Hz" in err


def test_transcripts_are_text_tables_or_json_and_bad_files_do_not_stop_them(speech, recordings, capsys, tmp_path):
    good = f"{recordings}/mid_anna_3.wav"
    (tmp_path / "bad.wav").write_bytes(b"RIFF")
    sounds = [good, str(tmp_path / "bad.wav"), "missing.wav", f"joined: {good} + 0.2 s + {recordings}/low_anna_1.wav"]
    assert main(["transcribe", str(speech), *sounds]) == 1
    out, err = capsys.readouterr()
    assert out.split("\n") == ["mid", "", "", "mid low", ""]
    assert "bad.wav cannot be read" in err and "missing.wav does not exist" in err and "2 sounds could not" in err
    assert main(["transcribe", str(speech), *sounds, "--format", "jsonl"]) == 1
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["text"] for line in lines] == ["mid", None, None, "mid low"] and "error" in lines[1]
    assert lines[1]["confidence"] is None and 0.5 < lines[0]["confidence"] <= 1
    assert main(["transcribe", str(speech), good, "--beam", "3", "--n-best", "2"]) == 0
    rows = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    assert [row[:2] for row in rows] == [[good, "1"], [good, "2"]] and rows[0][3] == "mid" != rows[1][3]
    assert main(["transcribe", str(speech), good, "--format", "xml"]) == 2
    assert "text, tsv or jsonl" in capsys.readouterr().err


def test_standard_input_folders_and_zip_files_are_transcribed(speech, recordings, capsys, tmp_path, monkeypatch):
    good = f"{recordings}/mid_anna_3.wav"
    with zipfile.ZipFile(tmp_path / "clips.zip", "w") as clips:
        clips.write(good, "in/a.wav")
    (tmp_path / "x.wav").mkdir()
    os.mkfifo(tmp_path / "pipe")
    writer = threading.Thread(target=lambda: (tmp_path / "pipe").write_bytes(Path(good).read_bytes()))
    writer.start()
    content = io.BytesIO(Path(good).read_bytes())
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=content))
    sounds = ["-", str(tmp_path / "clips.zip"), str(tmp_path / "x.wav"), str(tmp_path / "pipe"), str(recordings)]
    assert main(["transcribe", str(speech), *sounds, "--format", "tsv"]) == 1
    out, err = capsys.readouterr()
    writer.join()
    rows = [line.split("\t") for line in out.splitlines()]
    assert [row[3] for row in rows[:4]] == ["mid", "mid", "", "mid"] and rows[1][0].endswith("clips.zip/in/a.wav")
    assert [row[0] for row in rows[4:]] == [str(path) for path in sorted(recordings.glob("*.wav"))]
    assert "x.wav is a directory without sounds (WAV, FLAC, OGG)" in err and "1 sound could not" in err
    assert main(["transcribe", str(speech), "-"]) == 1
    assert "Standard input is empty" in capsys.readouterr().err


def test_a_run_of_another_task_is_refused_with_the_command_for_it(speech, labels, recordings, capsys):
    assert main(["transcribe", str(labels), str(recordings / "low_anna_1.wav")]) == 2
    assert "regard predict" in capsys.readouterr().err
    assert main(["predict", str(speech)]) == 2
    assert "regard transcribe" in capsys.readouterr().err


def test_a_replaced_file_is_read_again(speech, recordings, tmp_path):
    run = regard.load(speech)
    name = next(name for name in run.loaded.input.store.header.names if not name.startswith("joined"))
    before = soundfile.read(name, dtype="float32")
    try:
        other = "low" if "low" not in name.split("/")[-1] else "high"
        soundfile.write(name, tone(WORDS[other], 0.15), 8000)
        assert run(name).text == other
    finally:
        soundfile.write(name, *before)


def test_speech_in_python_as_path_array_and_list(speech, recordings):
    model = regard.load(speech)
    path = recordings / "high_anna_5.wav"
    answer = model(path)
    assert type(answer) is Text and answer.text == "high" and model.translate(str(path)) == "high"
    pause = np.zeros(1600, dtype=np.float32)
    assert model(np.concatenate([tone(1000, 0.15), pause, tone(400, 0.15)])).text == "mid low"
    with pytest.raises(BadInputs, match=r"inputs\[1\].*does not exist") as caught:
        model([path, "missing.wav"])
    assert caught.value.answers[0].text == "high"
    with pytest.raises(RegardError, match="at most 10"):
        model(np.zeros(8000 * 11, dtype=np.float32))


@pytest.mark.parametrize("words", list(permutations(WORDS)), ids="-".join)
def test_attention_moves_forward_and_looks_most_at_the_word_that_is_written(speech, recordings, words):
    parts = [recordings / f"{word}_anna_7.wav" for word in words]
    trace = regard.load(speech).trace("joined: " + " + 0.200 s + ".join(map(str, parts)))
    assert trace.target.tokens[:3] == list(words) and trace.source.tokens[:2] == ["0.00", "0.04"]
    weights = trace.activations["decoder.source_attention.weights"][0, :3]  # T×S
    assert weights.shape[1] == len(trace.source)
    centres = (weights * torch.arange(weights.shape[1])).sum(1) / weights.sum(1)
    assert centres[0] < centres[1] < centres[2]
    start = 0.0  # the largest weight, not the centre: a part of the weight stays on earlier words
    for part, place in zip(parts, weights.argmax(1).tolist(), strict=True):
        end = start + soundfile.info(part).duration
        assert 25 * start - 2 <= place <= 25 * end + 2  # 25 positions a second; two convolutions look two further
        start = end + 0.2


def test_attention_is_drawn_over_the_spectrogram(speech, recordings, tmp_path):
    import regard

    model = regard.load(speech)
    sound = next(iter(sorted(recordings.rglob("*.wav"))))
    found = model.explain(sound, "attention")
    first, second = found.panels()
    assert first.view == "picture" and second.title == "Stretch by stretch"
    (look,) = first.data
    assert look["grid"] == [1, len(found.source)] and look["image"].startswith("data:image/png;base64,")
    assert look["words"] == [
        word for word, special in zip(found.target.word_texts, found.target.special, strict=True) if not special
    ]
    spectrogram = found.look.image
    assert spectrogram.size[0] >= 320 and len(set(spectrogram.convert("L").getdata())) > 10
    found.save(tmp_path / "heard.png")
    found.save(tmp_path / "heard.html")
    watched = model.watch(sound)
    assert [panel.view for panel in watched.attention_panels()] == ["picture", "attention"]


def test_the_loudness_of_bands_is_removed_and_that_of_pauses_does_not_matter():
    torch.manual_seed(1)
    frames = torch.rand(1, 30, 8) * 0.5 + 0.2
    real = torch.ones(1, 30, dtype=torch.bool)
    usual = standardise_bands(frames, real)
    torch.testing.assert_close(usual.mean((0, 1)), torch.zeros(8), atol=0.2, rtol=0)
    louder = standardise_bands(frames + 0.1 * torch.linspace(-1, 1, 8), real)  # another microphone
    torch.testing.assert_close(louder, usual, atol=0.05, rtol=0)
    paused = torch.cat([frames, torch.zeros(1, 50, 8)], 1)
    torch.testing.assert_close(standardise_bands(paused, torch.ones(1, 80, dtype=torch.bool))[:, :30], usual)
    assert standardise_bands(torch.zeros(1, 3, 8), real[:, :3]).abs().max() == 0  # silence


def test_a_quiet_stretch_becomes_as_loud_as_a_loud_one_and_silence_stays_silent():
    torch.manual_seed(1)
    loud = torch.rand(1, 100, 8) * 0.5 + 0.4
    loud[:, :, 0] = 1.0  # so that every frame of the loud stretch stays as it is
    pause = torch.zeros(1, STRETCH, 8)
    for quieter in (0.1, 0.3):  # 6 and 18 dB
        both = torch.cat([loud, pause, loud - quieter], 1)
        found = even_loudness(both)
        torch.testing.assert_close(found[:, :100], loud)
        kept = loud - quieter > quieter  # lower levels, near the end of the range, are raised by less
        torch.testing.assert_close(found[:, -100:][kept], loud[kept])
        assert (found[:, -100:] <= loud + 1e-6).all() and found[:, 100:-100].abs().max() == 0
    whisper = torch.full((1, 80, 8), 0.2)
    torch.testing.assert_close(even_loudness(whisper), 2 * whisper)
    assert even_loudness(torch.full((1, 80, 8), 0.45)).max() <= 0.45 + LARGEST_RAISE


@pytest.mark.parametrize("pool_bands", [False, True])
def test_vectors_are_at_first_about_as_large_as_the_frames(pool_bands):
    torch.manual_seed(1)
    frames, real = torch.randn(4, 80, 40), torch.ones(4, 80, dtype=torch.bool)
    vectors, _ = Subsampling(40, 16, 128, pool_bands=pool_bands)(frames, real)
    assert 0.5 < vectors.std().item() < 2  # smaller ones would be lost among positions, and learned late


def test_pooling_bands_makes_a_voice_that_is_one_band_higher_more_alike():
    torch.manual_seed(1)
    frames, real = torch.randn(2, 40, 16), torch.ones(2, 40, dtype=torch.bool)
    changes = []
    for pool_bands in (False, True):
        subsampling = Subsampling(16, 32, 8, pool_bands=pool_bands)
        features: list[torch.Tensor] = []
        subsampling.linear.register_forward_pre_hook(lambda _, inputs, seen=features: seen.append(inputs[0]))
        for sound in (frames, frames.roll(1, dims=2)):
            subsampling(sound, real)
        usual, higher = features
        changes.append(((usual - higher).norm() / usual.norm()).item())
    assert changes[1] < 0.9 * changes[0], changes


@pytest.mark.parametrize("pool_bands", [False, True])
def test_gradients_have_the_strides_of_their_weights(pool_bands):
    """DDP warns of others, also if they differ in an axis of size 1 alone."""
    layer = Subsampling(16, 8, 12, pool_bands=pool_bands)
    layer.load_state_dict(deepcopy(layer).state_dict())
    layer(torch.rand(2, 9, 16), torch.ones(2, 9, dtype=torch.bool))[0].square().sum().backward()
    for name, weight in layer.named_parameters():
        assert weight.grad.stride() == weight.stride() and weight.is_contiguous(), name


@pytest.mark.parametrize("bands", [4, 5, 7, 23, 40])
def test_any_number_of_bands_can_be_pooled_and_loudness_of_a_frame_hardly_matters(bands):
    torch.manual_seed(1)
    frames, real = torch.randn(2, 20, bands), torch.ones(2, 20, dtype=torch.bool)
    subsampling = Subsampling(bands, 8, 16, pool_bands=True)
    usual, mask = subsampling(frames, real)
    assert usual.shape == (2, 5, 16) and mask.all()
    torch.testing.assert_close(subsampling(10 * frames, real)[0], usual, atol=0.3, rtol=0.1)
    assert (Subsampling(bands, 8, 16)(10 * frames, real)[0]).std() > 5 * usual.std()


@pytest.mark.parametrize("normalise", [False, True])
@pytest.mark.parametrize("body", BODIES, ids=lambda body: "-".join(map(str, body.values())))
def test_padding_changes_nothing(body, normalise):
    config = from_mapping(
        {
            "task": {"kind": "speech-recognition"},
            "data": {"train": {"spoken_words": "x"}},
            "model": {
                "width": 16,
                "encoder": {
                    **ENCODER,
                    "body": body,
                    "normalise": normalise,
                    "even_loudness": normalise,
                    "pool_bands": normalise,
                },
                "decoder": {"kind": "rnn"},
            },
        }
    )
    torch.manual_seed(1)
    model = build(config.model, 10, 10).eval()
    sounds = [torch.rand(length, 16) for length in (1, 2, 3, 4, 5, 17, 40)]
    inputs = torch.randint(6, 10, (len(sounds), 3))
    with torch.inference_mode():
        memory = model.encode(pad_frames(sounds))
        together = model.decode(memory, inputs)
        for row, frames in enumerate(sounds):
            alone = model.encode(pad_frames([frames]))
            length = subsampled_length(len(frames))
            assert memory.mask[row].sum() == alone.mask.sum() == length == alone.states.shape[1]
            torch.testing.assert_close(memory.states[row, :length], alone.states[0], atol=1e-5, rtol=1e-4)
            torch.testing.assert_close(memory.summary[row], alone.summary[0], atol=1e-5, rtol=1e-4)
            torch.testing.assert_close(
                together[row], model.decode(alone, inputs[row : row + 1])[0], atol=1e-5, rtol=1e-4
            )


def test_batches_go_by_the_length_of_sounds_and_only_training_varies_them(speech):
    prepared = prepare(Run.open(speech).config, speech)
    task, lengths = prepared.task, prepared.task.input.source_lengths(prepared.train)
    sounds = task.input.store
    for row in (0, 5, 9):
        assert lengths[row] == subsampled_length(len(sounds[prepared.train[row][0][0]]))
    batches = list(task.batches(prepared.train).once())
    assert sum(map(len, batches)) == len(prepared.train)
    for batch in batches:
        assert len(batch) == 1 or len(batch) * (lengths[batch.rows].max() + 1) <= 400
    once = [task.input.tensors(batches[0], torch.Generator().manual_seed(seed), training=False) for seed in (1, 2)]
    varied = [task.input.tensors(batches[0], torch.Generator().manual_seed(seed), training=True) for seed in (1, 1, 2)]
    assert torch.equal(once[0]["source"], once[1]["source"])
    assert torch.equal(varied[0]["source"], varied[1]["source"])
    assert varied[0]["source"].shape != varied[2]["source"].shape or not torch.equal(
        varied[0]["source"], varied[2]["source"]
    )
    assert all(((one["source"] >= 0) & (one["source"] <= 1)).all() for one in (*once, *varied))


def test_a_run_is_resumed_and_damaged_features_are_refused(labels, tmp_path):
    import shutil

    run = tmp_path / "run"
    shutil.copytree(labels, run)
    assert train(load(run / "config.yaml", ["training.steps=82"]), run, resume=True, view=View()).step == 82
    content = bytearray((run / "data" / "sounds" / "frames.uint8").read_bytes())
    content[10] ^= 1
    (run / "data" / "sounds" / "frames.uint8").write_bytes(bytes(content))
    with pytest.raises(RegardError, match=r"frames\.uint8"):
        train(load(run / "config.yaml", ["training.steps=84"]), run, resume=True, view=View())


def test_speech_starts_from_a_classifier_of_sounds(labels, recordings, tmp_path):
    settings = {
        "task": {"kind": "speech-recognition"},
        "data": {"train": {"spoken_words": str(recordings), "max_words": 2, "size": 60}, "held_out": 6},
        "text": {"tokenizer": {"kind": "words"}},
        "model": {"decoder": {"kind": "rnn"}, "start_from": str(labels)},
        "training": {**TRAINING, "steps": 1, "validate_every": 1, "tune": "fresh"},
    }
    train(from_mapping(settings), tmp_path / "run", view=View())
    theirs, ours = (regard.load(run).model.state_dict() for run in (labels, tmp_path / "run"))
    shared = [name for name in ours if name.startswith("encoder.")]
    assert shared and all(torch.equal(ours[name], theirs[name]) for name in shared)


def test_settings_that_cannot_work_are_refused():
    def resolve(**sections):
        return from_mapping(
            {"data": {"train": {"spoken_words": "x"}}, "task": {"kind": "speech-recognition"}, **sections}
        )

    assert resolve().model.encoder.kind == "sound" and resolve().model.encoder.width == 256
    assert resolve(model={"width": 64}).model.encoder.body.width == 64
    with pytest.raises(UsageError, match=r"model\.encoder\.body\.width is 48. Set only one"):
        resolve(model={"encoder": {"kind": "sound", "width": 32, "body": {"kind": "conv", "width": 48}}})
    with pytest.raises(UsageError, match="multiple of 100"):
        resolve(model={"encoder": {"kind": "sound", "rate": 11_025}})
    with pytest.raises(UsageError, match=r"max_length is 1024, but sounds of model\.encoder\.max_seconds 60"):
        resolve(model={"positions": {"kind": "learned"}})
    with pytest.raises(UsageError, match="cannot read sounds"):
        resolve(model={"encoder": {"kind": "rnn"}})
    with pytest.raises(UsageError, match="is trained on"):
        from_mapping({"data": {"train": {"spoken_words": "x"}}})
    with pytest.raises(UsageError, match="is trained on"):
        resolve(data={"train": {"tsv": "x.tsv"}})
    with pytest.raises(UsageError, match="each direction takes half"):
        resolve(model={"encoder": {"kind": "sound", "body": {"kind": "rnn", "width": 33}}})


CTC_DATA = {"train": {"spoken_words": "x"}}


def test_the_weight_of_ctc_in_search_is_set_where_there_is_a_ctc_layer():
    """Without one it stays empty, so that a dumped configuration has nothing that a user could not write."""
    speech = {"task": {"kind": "speech-recognition"}, "data": CTC_DATA}
    assert from_mapping(speech).decoding.ctc == 0.3
    assert from_mapping(speech, ["decoding.ctc=0.5"]).decoding.ctc == 0.5
    assert from_mapping(speech, ["decoding.ctc=0"]).decoding.ctc == 0
    for config in (
        from_mapping(speech, ["task.ctc=0"]),
        from_mapping({"task": {"kind": "sound-classification"}, "data": CTC_DATA}),
        from_mapping({"data": {"train": {"generate": "copy"}}}),
    ):
        assert config.decoding.ctc is None and "ctc: 0.3" not in dump(config)
        assert from_mapping(yaml.safe_load(dump(config))) == config


def test_a_weight_of_ctc_without_effect_is_refused(tmp_path):
    path = tmp_path / "my.yaml"
    path.write_text(
        "task: {kind: speech-recognition, ctc: 0}\n"
        "data: {train: {spoken_words: x}}\n"
        "decoding:\n"
        "  ctc: 0.2  # without a layer\n"
    )
    with pytest.raises(UsageError, match=r"my\.yaml:4: decoding\.ctc has no effect: task\.ctc is 0.*task\.ctc above 0"):
        load(path)
    assert load(path, ["task.ctc=0.4"]).decoding.ctc == 0.2
    assert load(path, ["decoding.ctc=0"]).decoding.ctc is None  # what search does anyway
    with pytest.raises(UsageError, match=r"^command line: decoding\.ctc has no effect"):
        load(path, ["decoding.ctc=0.3"])
    for task, data in (("sound-classification", CTC_DATA), ("translation", {"train": {"generate": "copy"}})):
        with pytest.raises(UsageError, match=rf"has no effect on task `{task}` .*Remove it"):
            from_mapping({"task": {"kind": task}, "data": data}, ["decoding.ctc=0.3"])


def test_the_file_of_an_earlier_run_may_have_a_weight_of_ctc_without_effect(tmp_path):
    """It was written into the file of every run; what a user adds on the command line is refused as anywhere."""
    (tmp_path / "run.json").write_text("{}")
    (tmp_path / "config.yaml").write_text("data: {train: {generate: copy}}\ndecoding: {ctc: 0.3}\n")
    assert load(tmp_path / "config.yaml").decoding.ctc is None
    with pytest.raises(UsageError, match=r"command line: decoding\.ctc has no effect on task `translation`"):
        load(tmp_path / "config.yaml", ["decoding.ctc=0.3"])


def test_runs_with_and_without_ctc_start_from_each_other(speech, tmp_path):
    """The weight of CTC in search belongs to the CTC layer, so it is no difference where one of them has none."""
    settings = {
        "task": {"kind": "speech-recognition", "ctc": 0},
        "data": {"train": {"spoken_words": "recordings", "max_words": 2, "size": 60}, "held_out": 6},
        "model": {"start_from": str(speech)},
        "training": {**TRAINING, "steps": 1, "validate_every": 1},
    }
    assert from_mapping(settings).decoding.ctc is None
    train(from_mapping(settings), tmp_path / "without", view=View())
    with pytest.raises(UsageError, match=r"decoding\.ctc has no effect: task\.ctc is 0"):
        regard.load(tmp_path / "without", ["decoding.ctc=0.5"])
    again = {**settings, "task": {"kind": "speech-recognition"}, "model": {"start_from": str(tmp_path / "without")}}
    assert from_mapping(again).decoding.ctc == 0.3
    with pytest.raises(UsageError, match=r"decoding\.ctc is 0\.5 here, but 0\.3"):
        from_mapping({**settings, "task": {"kind": "speech-recognition"}}, ["decoding.ctc=0.5"])


def test_a_weight_of_ctc_is_refused_for_a_run_without_its_layer(labels, capsys):
    assert main(["evaluate", str(labels), "decoding.ctc=0.5"]) == 2
    assert "has no effect on task `sound-classification`" in capsys.readouterr().err


def test_ctc_is_the_sum_over_all_alignments():
    torch.manual_seed(3)
    layer, states = torch.nn.Linear(4, 8), torch.randn(2, 4, 4)
    mask = torch.tensor([[True, True, True, True], [True, True, True, False]])
    outputs = torch.tensor([[6, 7, EOS], [6, 6, EOS]])  # the second needs a blank between equal tokens: b = 6 0 6
    found = ctc_loss(layer, Memory(states, mask, states.mean(1)), outputs)
    log_probs = layer(states).log_softmax(2)
    for row, (length, wanted) in enumerate([(4, [6, 7]), (3, [6, 6])]):
        total = torch.tensor(0.0)
        for path in product(range(8), repeat=length):
            merged = [token for token, _ in groupby(path) if token != PAD]
            if merged == wanted:
                total += log_probs[row, range(length), list(path)].sum().exp()
        torch.testing.assert_close(found[row], -total.log(), atol=1e-4, rtol=1e-4)
    short = Memory(states[:, :1], mask[:, :1], states.mean(1))
    assert ctc_loss(layer, short, outputs).tolist() == [0.0, 0.0]  # no alignment exists


class Blind(ModelSteps):
    """A decoder that finds every token equally probable, with log-probability 0; states are counts of tokens."""

    def begin(self, memory):
        return Counted(torch.zeros(len(memory.mask)))

    def step(self, tokens, state):
        return torch.zeros(len(tokens), 8), Counted(state.count + 1)


@dataclass
class Counted:
    count: torch.Tensor

    def select(self, rows):
        return Counted(self.count[rows])


def blind_ctc(weight=0.5, seed=3):
    """CTC alone as a step model (the decoder adds zero) over two sounds of four and three positions, and its layer."""
    torch.manual_seed(seed)
    layer, states = torch.nn.Linear(4, 8), torch.randn(2, 4, 4)
    mask = torch.tensor([[True, True, True, True], [True, True, True, False]])
    memory = Memory(states, mask, states.mean(1))
    model = SimpleNamespace(encode=lambda content: memory, ctc=layer)
    return CtcSteps(Blind(model), model, weight), Source(None, mask, ("", "")), layer, memory


def test_scores_of_ctc_add_up_to_its_log_probability():
    """However an output continues: after its tokens and its end, the sum is −λ · the loss of CTC."""
    steps, source, layer, memory = blind_ctc()
    for output in [[6, 7], [6, 6], [7], [6, 7, 6], []]:
        outputs = torch.tensor([[*output, EOS]] * 2)
        wanted = -0.5 * ctc_loss(layer, memory, outputs)
        state, last, total = steps.start(source), torch.tensor([1, 1]), torch.zeros(2)
        for token in [*output, EOS]:
            scores, state = steps.step(last, state)
            total, last = total + scores[:, token], torch.tensor([token, token])
            state = state.select(torch.tensor([0, 1]))
        possible = wanted != 0  # the loss of what has no alignment is 0
        torch.testing.assert_close(total[possible], wanted[possible].float(), atol=1e-4, rtol=1e-4)
        assert (total[~possible] < -1000).all()


def test_the_score_of_a_prefix_is_that_of_all_outputs_that_begin_with_it():
    steps, source, layer, memory = blind_ctc()
    _, state = steps.step(torch.tensor([1, 1]), steps.start(source))
    _, state = steps.step(torch.tensor([6, 6]), state)
    log_probs = layer(memory.states).log_softmax(2)
    for row, length in enumerate((4, 3)):
        for second in (6, 7):
            total = torch.tensor(0.0)
            for path in product(range(8), repeat=length):
                merged = [token for token, _ in groupby(path) if token != PAD]
                if merged[:2] == [6, second]:
                    total += log_probs[row, range(length), list(path)].sum().exp()
            assert state.scores[row, second].item() == pytest.approx(total.log().item(), abs=1e-4)


@torch.inference_mode()
def test_search_with_ctc_finds_the_best_mixture(speech):
    """A beam as wide as the space finds the output with the best (1 − λ) · decoder + λ · CTC; λ = 0 is the decoder."""
    model = regard.load(speech, ["decoding.length_penalty=0", "decoding.beam=200", "decoding.max_length=4"])
    loaded = model.loaded
    source = prepare(loaded.config, speech).validation_pairs[0].source
    tokens = [token for token in range(loaded.task.output.tokenizer.size) if token >= len(SPECIALS)]
    frames = loaded.task.input.collate([source], [])[0]
    best = {}
    for output in (output for length in range(4) for output in product(tokens, repeat=length)):
        outputs = torch.tensor([[*output, EOS]])
        memory = loaded.model.encode(frames)
        logits = loaded.model.scores(loaded.model.decode(memory, torch.tensor([[BOS, *output]])))
        decoder = logits.log_softmax(2)[0, range(len(output) + 1), outputs[0]].sum()
        best[tuple(output)] = float(0.7 * decoder - 0.3 * ctc_loss(loaded.model.ctc, memory, outputs)[0])
    wanted = max(best, key=best.__getitem__)
    found = loaded.hypotheses([source], Search(beam=200, length_penalty=0.0))[0][0]
    assert found.tokens == wanted or best[tuple(found.tokens)] == pytest.approx(best[wanted], abs=1e-3)


def test_what_ctc_makes_impossible_is_no_hypothesis_unless_nothing_else_exists(speech, tmp_path):
    """A sound of ten samples has one position, and so room for one word at most."""
    soundfile.write(tmp_path / "ten.wav", tone(300, 10 / 8000), 8000)
    model = regard.load(speech, ["decoding.ctc=0.001"])
    found = model.loaded.hypotheses([str(tmp_path / "ten.wav")], Search(beam=20, count=20))[0]
    assert len(WORDS) < len(found) <= len(SPECIALS) + len(WORDS)
    assert all(len(hypothesis.tokens) <= 1 and hypothesis.score > -1000 for hypothesis in found)
    two = Search(beam=3, count=3, constraints=Constraints(prefix="low mid"))
    assert model.loaded.hypotheses([str(tmp_path / "ten.wav")], two)[0][0].text.startswith("low mid")


def test_a_reference_is_scored_as_search_scores_it(speech):
    """With CTC in search, output and reference have the scores that search compares: no output is a false error."""
    run = regard.load(speech, ["decoding.ctc=0.8", "decoding.beam=100", "decoding.max_length=3"]).loaded
    for pair in prepare(run.config, speech).validation_pairs[:6]:
        best = run.hypotheses([pair.source], Search(beam=100, count=20))[0]
        for other in best[1:]:
            trace = run.trace_hypothesis(pair.source, other)
            if other.ended == best[0].ended == "end":
                found = reference(trace, run, pair.source)
                assert found.verdict == "model error" and "CTC" in found.explanation and found.ctc == 0.8
                assert found.output.score == pytest.approx(best[0].score, abs=1e-4)
                assert found.reference.score == pytest.approx(other.score, abs=1e-4)
                assert found.reference.log_probs == pytest.approx(other.log_probs, abs=1e-4)


def test_what_is_watched_says_that_search_adds_ctc(speech):
    model = regard.load(speech)
    source = prepare(model.loaded.config, speech).validation_pairs[0].source
    watched = model.watch(source)
    data = watched.to_json()
    assert data["ctc"] == 0.3
    decoder = sum(math.log(prediction.probability) for prediction in watched.predictions)
    trace = model.loaded.trace_hypothesis(source, watched.found[0])
    frames = model.loaded.task.input.collate([source], [])[0]
    outputs = torch.tensor([[*watched.found[0].tokens, EOS]])
    ctc = float(ctc_loss(model.loaded.model.ctc, model.loaded.model.encode(frames), outputs).detach())
    assert decoder == pytest.approx(float(trace.target_log_probs.sum()), abs=1e-3)
    assert data["hypotheses"][0]["logProb"] == pytest.approx(0.7 * decoder - 0.3 * ctc, abs=1e-2)


def test_ctc_is_part_of_the_training_loss_alone(speech):
    loaded = regard.load(speech).loaded
    prepared = prepare(loaded.config, speech)
    task, batch = prepared.task, next(prepared.task.batches(prepared.train).once())
    random = torch.Generator().manual_seed(1)
    tensors = task.training_batch(batch, random, training=False)
    point = TrainingPoint(1, 10, random)
    plain = task.output.loss(loaded.model, tensors)
    mixed = task.output.loss(loaded.model, tensors, point=point)
    alone = task.output.loss_given(
        loaded.model, loaded.model.encode(tensors["source"]), tensors, scale=1.0, point=point
    )
    ctc = ctc_loss(loaded.model.ctc, loaded.model.encode(tensors["source"]), tensors["outputs"]).sum()
    torch.testing.assert_close(mixed.smoothed, 0.7 * alone.smoothed + 0.3 * ctc)
    torch.testing.assert_close(plain.nll, mixed.nll)
    without = task.configured(load(speech / "config.yaml", ["task.ctc=0"]))
    assert not hasattr(without.output.build(), "ctc")


@pytest.mark.parametrize("what", ["attention", "heads", "attribute", "lens", "reasons", "all", "probe", "identify"])
def test_inspection_of_speech_works_or_is_refused_in_a_sentence(speech, recordings, what, capsys, tmp_path):
    sound = [] if what in ("heads", "probe") else [str(recordings / "low_anna_1.wav")]
    code = main(["inspect", what, str(speech), *sound, *(["-o", str(tmp_path / "page.html")] if what == "all" else [])])
    err = capsys.readouterr().err
    assert code in (0, 1, 2) and "Traceback" not in err and "bug in Regard" not in err
    assert code == 0 or err.count("error:") == 1


def test_heads_of_a_speech_recogniser_are_described_over_its_own_sounds(speech, recordings, capsys, tmp_path):
    assert main(["inspect", "heads", str(speech)]) == 0
    assert "validation sounds" in capsys.readouterr().out
    (tmp_path / "texts.txt").write_text("low\nhigh\n")
    assert main(["inspect", "heads", str(speech), "--corpus", str(tmp_path / "texts.txt")]) == 2
    assert "this run reads sounds" in capsys.readouterr().err
    assert main(["inspect", "all", str(speech), str(recordings / "low_anna_1.wav")]) == 0
    assert "── heads:" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("what", "code", "wanted"),
    [
        ("lens", 0, "layer 0"),
        ("all", 0, "layer 0"),
        ("attention", 2, "no attention to show"),
        ("identify", 2, "no attention"),
        ("heads", 2, "no attention"),
        ("attribute", 2, "reads sounds"),
    ],
)
def test_a_classifier_of_sounds_is_inspected_or_refused_in_a_sentence(labels, recordings, what, code, wanted, capsys):
    sound = [] if what == "heads" else [str(recordings / "low_anna_1.wav")]
    assert main(["inspect", what, str(labels), *sound]) == code
    said = capsys.readouterr()
    assert wanted in (said.err if code else said.out) and "attribute shows" not in said.err


def test_a_second_text_is_refused(speech, recordings, capsys):
    for what in ("attention", "all"):
        assert main(["inspect", what, str(speech), str(recordings / "low_anna_1.wav"), "more"]) == 2
        assert "reads sounds one at a time" in capsys.readouterr().err


def test_names_with_tabs_and_line_breaks_stay_in_their_cell(speech, recordings, capsys, tmp_path):
    name = tmp_path / "low\tand\nslow.wav"
    name.write_bytes((recordings / "low_anna_1.wav").read_bytes())
    assert main(["transcribe", str(speech), str(name), "--format", "tsv"]) == 0
    (line,) = capsys.readouterr().out.splitlines()
    assert line.count("\t") == 3 and line.split("\t")[0] == f"{tmp_path}/low\\tand\\nslow.wav"


@pytest.mark.parametrize("to", ["huggingface", "ctranslate2"])
def test_an_export_of_a_run_that_reads_sounds_is_refused(labels, speech, to, capsys, tmp_path):
    for run in (labels, speech):
        assert main(["export", str(run), str(tmp_path / "out"), "--to", to]) == 1
        assert "from text to text" in capsys.readouterr().err and not (tmp_path / "out").exists()


def test_the_only_position_of_a_short_sound_is_drawn_with_all_its_weight():
    """Attention of 1 is dark, also where there is nothing smaller to compare it with."""
    frames = torch.rand(1, 16)
    figure = draw_listening(draw_spectrogram(frames), 0.04, ["low"], torch.ones(1, 1))
    assert figure.axes[1].images[0].norm(1.0) == 1.0
    spread = draw_listening(draw_spectrogram(frames), 0.08, ["low"], torch.tensor([[0.5, 0.5]]))
    assert spread.axes[1].images[0].norm(0.5) == pytest.approx(0.5)


def test_error_rates_by_hand():
    # the cat sat | a cat sat down: one replaced, one put in, of 3 words; (empty) | of 2: both taken out.
    found = score_text(["a cat sat down", "", "one  two "], ["the cat sat", "yes no", "one two"], ("wer", "cer"))
    assert found["wer"] == pytest.approx(100 * (2 + 2 + 0) / (3 + 2 + 2))
    # the → a: 3 edits, and " down": 5; "yes no" has 6 characters, "one two" 7, "the cat sat" 11.
    assert found["cer"] == pytest.approx(100 * (8 + 6) / (11 + 6 + 7))
    assert score_text(["a b c"], ["x"], ("wer",))["wer"] == 300.0
    assert score_text(["b c"], [("x y", "b d")], ("wer",))["wer"] == 50.0
    assert utility("wer")("a b", "a b") > utility("wer")("a c", "a b")


def test_an_evaluation_reads_a_manifest_where_training_had_none(speech, recordings, capsys):
    """Sounds are those of its folder."""
    names = sorted(path.name for path in recordings.glob("*_anna_*.wav"))
    manifest = recordings / "some.tsv"
    manifest.write_text("".join(f"{name}\t{name.split('_')[0]}\n" for name in names))
    assert main(["evaluate", str(speech), "--data", str(manifest), "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["sounds"] == len(names) and facts["scores"]["wer"] <= 5.0
    manifest.unlink()


def test_an_evaluation_reads_a_manifest_like_the_one_it_was_trained_with(tmp_path, recordings, capsys):
    names = sorted(path.name for path in recordings.glob("*.wav"))
    (tmp_path / "all.tsv").write_text("".join(f"{name}\t{name.split('_')[0]}\n" for name in names))
    (tmp_path / "few.tsv").write_text("".join(f"{name}\t{name.split('_')[0]}\n" for name in names[::7]))
    settings = {
        "task": {"kind": "sound-classification"},
        "data": {"train": {"sounds": str(recordings), "manifest": str(tmp_path / "all.tsv")}, "held_out": 5},
        "model": {"width": 8, "encoder": {**ENCODER, "body": {"kind": "bag"}}},
        "training": {**TRAINING, "steps": 2, "validate_every": 2, "batch_tokens": 100},
    }
    train(from_mapping(settings), tmp_path / "run", view=View())
    assert main(["evaluate", str(tmp_path / "run"), "--data", str(tmp_path / "few.tsv"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["sounds"] == len(names[::7])
