"""Speech by espeak-ng: what is spoken keeps to its settings, and can be trained on."""

import shutil

import pytest

import regard
from regard.cli import main
from regard.config.loading import from_mapping
from regard.config.media_corpora import SyntheticSpeech
from regard.data import synthetic_speech
from regard.data.sounds import SoundFormat, check_sound, read_frames
from regard.data.synthetic_speech import is_kept_from_training, read_synthetic_speech, synthesise
from regard.foundation.errors import RegardError, UsageError

needs_espeak = pytest.mark.skipif(shutil.which("espeak-ng") is None, reason="needs the program espeak-ng")
FORMAT = SoundFormat(8000, 40, 30.0)


def corpus(**settings):
    return SyntheticSpeech(speech="invented", **settings)


@needs_espeak
def test_the_same_settings_give_the_same_sentences_and_other_seeds_others():
    first, again, other = (list(read_synthetic_speech(corpus(size=30, seed=seed))) for seed in (1, 1, 2))
    assert first == again and first != other and len(first) == 30
    for name, text in first:
        voice, speed, pitch, *words = name.removeprefix("spoken: ").split()
        assert " ".join(words) == text and 1 <= len(words) <= 4
        assert voice.split("+")[0] == "es" and 130 <= int(speed) <= 190 and 30 <= int(pitch) <= 70


@needs_espeak
def test_unseen_words_and_voices_never_occur_in_other_corpora():
    train = list(read_synthetic_speech(corpus(size=400, voices=["m1", "f1"])))
    test = list(read_synthetic_speech(corpus(size=400, voices=["m7"], unseen=True)))
    words = [{word for _, text in pairs for word in text.split()} for pairs in (train, test)]
    assert not words[0] & words[1] and all(is_kept_from_training(word) for word in words[1])
    assert all("+m7 " in name for name, _ in test) and not any("+m7 " in name for name, _ in train)


@needs_espeak
def test_a_sound_is_made_from_its_name():
    slow, fast = (read_frames(f"spoken: es+f2 {speed} 45 bano tilu", FORMAT)[0] for speed in (100, 300))
    assert len(slow) > 1.5 * len(fast) and slow.shape[1] == 40
    check_sound("spoken: es+f2 160 45 bano tilu")
    assert synthesise("spoken: es+m1 160 45 -w file")[:4] == b"RIFF"  # a text, not an option


@needs_espeak
@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("spoken: es 160 45 bano", "is not a synthetic sound"),
        ("spoken: es+f2 160 45", "is not a synthetic sound"),
        ("spoken: xx+f2 160 45 bano", "cannot speak with the voice"),
    ],
)
def test_a_name_that_cannot_be_spoken_is_refused(name, message):
    with pytest.raises(RegardError, match=message):
        read_frames(name, FORMAT)


@needs_espeak
def test_a_voice_that_espeak_does_not_have_is_refused():
    """It would speak without the variant, so that a test with unseen voices has those of training."""
    with pytest.raises(RegardError, match="no voice variant `zz9`"):
        synthetic_speech.synthesise("spoken: es+zz9 160 45 bano")


def test_without_espeak_the_error_says_how_to_install_it(monkeypatch):
    synthetic_speech.require_espeak.cache_clear()
    monkeypatch.setattr(synthetic_speech.shutil, "which", lambda name: None)
    with pytest.raises(RegardError, match="apt install espeak-ng"):
        list(read_synthetic_speech(corpus(size=1)))
    synthetic_speech.require_espeak.cache_clear()


@pytest.mark.parametrize("settings", [{"speed": [200, 100]}, {"pitch": [0, 100]}, {"voices": ["../m1"]}])
def test_settings_that_espeak_cannot_use_are_refused(settings):
    with pytest.raises(UsageError):
        from_mapping({"task": {"kind": "speech-recognition"}, "data": {"train": {"speech": "invented", **settings}}})


@needs_espeak
def test_a_recogniser_is_trained_on_texts_and_on_invented_words(tmp_path, capsys):
    (tmp_path / "lines.txt").write_text("uno dos\n\ndos tres\n" * 20)
    settings = {
        "task": {"kind": "speech-recognition"},
        "data": {
            "train": {"speech": str(tmp_path / "lines.txt"), "voices": ["m1", "f1"]},
            "test": {"speech": "invented", "size": 3, "unseen": True},
            "held_out": 4,
        },
        "text": {"tokenizer": {"kind": "characters"}},
        "model": {"width": 16, "encoder": {"kind": "sound", "rate": 8000, "body": {"kind": "rnn"}}},
        "training": {"steps": 2, "batch_tokens": 300},
    }
    import json

    (tmp_path / "my.yaml").write_text(json.dumps(settings))
    assert main(["train", str(tmp_path / "my.yaml"), "--run", str(tmp_path / "run")]) == 0
    assert isinstance(regard.load(tmp_path / "run")("spoken: es+m2 150 50 uno").text, str)
