"""Sounds: files, features, manifests, sequences of spoken words, and the store that keeps their features."""

import io
import json
import os
import unicodedata
import zipfile

import numpy as np
import pytest
import soundfile
import torch
from pydantic import TypeAdapter

from regard.config.data import Corpus
from regard.data import sounds as sounds_module
from regard.data.corpus import read
from regard.data.log_mel import RANGE, hertz_to_mel, log_mel, mel_filters, mel_to_hertz, resample
from regard.data.sound_augmentation import add_noise, change_speed, equalise, hide_stretches
from regard.data.sound_store import SoundStore
from regard.data.sounds import SoundFormat, check_sound, join_sounds, list_sounds, read_frames, sounds_in_memory
from regard.data.wav_header import missing_bytes
from regard.foundation.errors import RegardError

WANTED = SoundFormat(rate=8000, bands=20, max_seconds=5.0)


def sine(frequency, seconds, rate=8000):
    return np.sin(2 * np.pi * frequency * np.arange(round(seconds * rate)) / rate).astype(np.float32)


def corpus_of(**settings):
    return TypeAdapter(Corpus).validate_python(settings)


def test_a_tone_is_loudest_in_the_band_that_holds_it():
    frames = log_mel(sine(1000, 0.5), 8000, 20)
    band = int(mel_filters(8000, 256, 20)[:, round(1000 / 8000 * 256)].argmax())
    assert frames.shape == (49, 20) and frames.max() == 255
    assert set(frames.argmax(1).tolist()) == {band}


def test_loudness_does_not_change_features_and_silence_has_none():
    tone = sine(700, 0.3)
    assert np.abs(log_mel(tone, 8000, 20).astype(int) - log_mel(0.01 * tone, 8000, 20)).max() <= 1
    assert not log_mel(np.zeros(800, dtype=np.float32), 8000, 20).any()


@pytest.mark.parametrize("factor", [1e-30, 1e30])
def test_very_quiet_and_very_loud_sounds_have_features(factor):
    """Their energies are outside of what 32 bits hold."""
    tone = sine(700, 0.3)
    assert (log_mel(np.float32(factor) * tone, 8000, 20) == log_mel(tone, 8000, 20)).mean() > 0.99


@pytest.mark.parametrize("size", [0, 0xFFFFFFFF, 0x7FFFFFFF, 3210])
def test_a_header_that_knows_no_size_or_almost_the_right_one_is_accepted(size, tmp_path):
    """Programs that write to a pipe announce none or the largest size."""
    soundfile.write(tmp_path / "a.wav", sine(440, 0.2), 8000)
    content = bytearray((tmp_path / "a.wav").read_bytes())
    content[40:44] = size.to_bytes(4, "little")
    assert content[36:40] == b"data" and missing_bytes(bytes(content))[0] <= 10
    longer = bytes(content[:36]) + b"odd \x01\0\0\0x\0" + bytes(content[36:])
    assert missing_bytes(longer) == missing_bytes(bytes(content))
    if size == 3210:
        (tmp_path / "b.wav").write_bytes(content)
        assert len(read_frames(str(tmp_path / "b.wav"), WANTED)[0]) == 19


@pytest.mark.parametrize(
    "kind",
    ["WAV PCM_U8", "WAV PCM_24", "WAV DOUBLE", "WAV GSM610", "WAVEX FLOAT", "RF64 PCM_16", "FLAC PCM_24", "OGG OPUS"],
)
def test_formats_of_samples_give_the_same_features(kind, tmp_path):
    tone = 0.5 * sine(440, 0.4)
    container, samples = kind.split()
    soundfile.write(tmp_path / "a.sound", tone, 8000, format=container, subtype=samples)
    found, wanted = read_frames(str(tmp_path / "a.sound"), WANTED)[0], log_mel(tone, 8000, 20)
    assert abs(len(found) - len(wanted)) <= 2 and set(found.argmax(1)[2:-4].tolist()) == set(wanted.argmax(1).tolist())


@pytest.mark.parametrize("count", [1, 199, 200, 201, 280, 281])
def test_every_sound_has_a_frame_and_no_sample_is_left_out(count):
    samples = np.zeros(count, dtype=np.float32)
    samples[-1] = 1.0
    frames = log_mel(samples, 8000, 20)
    assert len(frames) == 1 + max(0, -(-(count - 200) // 80))


@pytest.mark.parametrize("rate", [44_100, 48_000, 16_000, 11_025, 4_000])
def test_a_resampled_tone_is_the_tone_at_the_other_rate(rate):
    found = resample(sine(500, 0.5, rate), rate, 8000)
    wanted = sine(500, 0.5)
    assert abs(len(found) - len(wanted)) <= 1
    middle = slice(400, 3600)  # beyond the ends a tone is cut off, which has all frequencies
    np.testing.assert_allclose(found[middle], wanted[middle], atol=0.01)


def test_frequencies_above_half_the_rate_do_not_fold_back():
    assert np.abs(resample(sine(6000, 0.5, 44_100), 44_100, 8000)[400:3600]).max() < 0.01


@pytest.mark.parametrize("ending", ["wav", "flac", "ogg"])
def test_formats_channels_and_rates_give_the_same_features(tmp_path, ending):
    mono, stereo = tmp_path / f"mono.{ending}", tmp_path / f"stereo.{ending}"
    tone, other = 0.5 * sine(440, 0.5, 16_000), 0.5 * sine(1300, 0.5, 16_000)
    soundfile.write(mono, (tone + other) / 2, 16_000)
    soundfile.write(stereo, np.stack([tone, other], axis=1), 16_000)
    (alone, rates), (both, _) = read_frames(str(mono), WANTED), read_frames(str(stereo), WANTED)
    assert rates == {16_000} and alone.shape == both.shape
    assert np.abs(alone.astype(int) - both).mean() < (1 if ending != "ogg" else 15)


def test_a_sound_in_a_zip_file_and_several_joined(tmp_path):
    content = io.BytesIO()
    soundfile.write(content, sine(440, 0.2), 8000, format="WAV")
    with zipfile.ZipFile(tmp_path / "clips.zip", "w") as files:
        files.writestr("in/a.wav", content.getvalue())
    (tmp_path / "a.wav").write_bytes(content.getvalue())
    inside = f"{tmp_path}/clips.zip/in/a.wav"
    assert (read_frames(inside, WANTED)[0] == read_frames(str(tmp_path / "a.wav"), WANTED)[0]).all()
    joined, _ = read_frames(join_sounds([inside, str(tmp_path / "a.wav")], [0.3]), WANTED)
    whole = np.concatenate([sine(440, 0.2), np.zeros(2400, dtype=np.float32), sine(440, 0.2)])
    assert np.abs(joined.astype(int) - log_mel(whole, 8000, 20)).mean() < 1
    with pytest.raises(RegardError, match="no such sound"):
        read_frames(f"{tmp_path}/clips.zip/b.wav", WANTED)


def test_names_in_a_zip_file_may_be_utf_8_without_a_mark(tmp_path):
    """As the program zip of Linux writes them; names that are not UTF-8 are read as the standard says."""
    sound = io.BytesIO()
    soundfile.write(sound, sine(440, 0.2), 8000, format="WAV")
    for number, name in enumerate(("é日.wav".encode(), b"\x82.wav")):
        path, content = tmp_path / f"{number}.zip", io.BytesIO()
        with zipfile.ZipFile(content, "w") as files:
            files.writestr("x" * len(name), sound.getvalue())
        path.write_bytes(content.getvalue().replace(b"x" * len(name), name))
        wanted = ("é日.wav", "é.wav")[number]
        assert list_sounds(str(path)) == [wanted] and len(read_frames(f"{path}/{wanted}", WANTED)[0])


def bad_files(directory):
    """Files that cannot be read, by what the error must say."""
    good = io.BytesIO()
    soundfile.write(good, sine(440, 0.2), 8000, format="WAV")
    soundfile.write(directory / "long.wav", np.zeros(8000 * 6, dtype=np.float32), 8000)
    soundfile.write(directory / "none.wav", np.zeros(0, dtype=np.float32), 8000)
    soundfile.write(directory / "nan.wav", np.full(800, np.nan, dtype=np.float32), 8000, subtype="FLOAT")
    soundfile.write(directory / "aiff.wav", sine(440, 0.2), 8000, format="AIFF")
    (directory / "empty.wav").write_bytes(b"")
    (directory / "text.wav").write_text("this is not a sound")
    (directory / "header.wav").write_bytes(good.getvalue()[:20])
    (directory / "cut.wav").write_bytes(good.getvalue()[:1000])
    (directory / "folder.wav").mkdir()
    return {
        "long.wav": "lasts 6.0 seconds, but this model reads at most 5",
        "none.wav": "has no samples",
        "nan.wav": "not finite",
        "aiff.wav": "format AIFF",
        "empty.wav": "empty.wav is empty",
        "text.wav": "cannot be read as WAV, FLAC or OGG",
        "header.wav": "cannot be read as WAV, FLAC or OGG|has no samples",
        "cut.wav": "cut short: its header announces 3,200 bytes of samples, and 2,244 of them are missing",
        "folder.wav": "is a directory",
        "missing.wav": "does not exist",
    }


def test_a_bad_sound_gets_one_sentence_with_its_name(tmp_path):
    for name, wanted in bad_files(tmp_path).items():
        with pytest.raises(RegardError, match=wanted) as caught:
            read_frames(str(tmp_path / name), WANTED)
        assert name in str(caught.value) and "\n" not in str(caught.value)
        if name in ("folder.wav", "missing.wav"):
            with pytest.raises(RegardError, match=wanted):
                check_sound(str(tmp_path / name))
    os.mkfifo(tmp_path / "pipe.wav")
    for name in ("", "  ", "joined: a.wav + nan s + b.wav", "joined: ", "a\0b.wav", 5000 * "a", f"{tmp_path}/pipe.wav"):
        for refuse in (check_sound, lambda name: read_frames(name, WANTED)):
            with pytest.raises(RegardError):
                refuse(name)


def test_without_soundfile_the_error_says_how_to_install_it(tmp_path, monkeypatch):
    soundfile.write(tmp_path / "a.wav", sine(440, 0.1), 8000)
    monkeypatch.setitem(__import__("sys").modules, "soundfile", None)
    with pytest.raises(RegardError, match="-m pip install 'soundfile"):
        read_frames(str(tmp_path / "a.wav"), WANTED)


def test_arrays_have_names_as_long_as_they_are_used():
    tone = sine(440, 0.2)
    with sounds_in_memory() as keep:
        plain, _ = read_frames(keep(tone), WANTED)
        integers, _ = read_frames(keep((tone * 32767).astype(np.int16)), WANTED)
        other, rates = read_frames(keep((sine(440, 0.2, 16_000), 16_000)), WANTED)
        assert rates == {16_000} and plain.shape == integers.shape == other.shape
        assert np.abs(plain.astype(int) - integers).max() <= 3
        file = io.BytesIO()
        soundfile.write(file, tone, 8000, format="WAV")
        tracked = torch.tensor(tone, requires_grad=True)
        for same in (file.getvalue(), tracked, np.stack([tone, tone], axis=1), tone.astype(">f4")):
            assert np.abs(read_frames(keep(same), WANTED)[0].astype(int) - plain).max() <= 3
        shapes = np.zeros((2, 2, 2)), np.zeros(0), np.zeros((0, 2)), np.stack([tone, tone]), [[0.0], [0.0, 1.0]]
        for wrong in (*shapes, np.array(["a"]), (tone, "x"), (tone, 1), (tone, True), np.zeros(9, np.uint8), file):
            with pytest.raises(RegardError):
                keep(wrong)
        with pytest.raises(RegardError, match=r"^The sound lasts 6\.0 seconds"):
            read_frames(keep(sine(440, 6)), WANTED)
    assert not sounds_module._ARRAYS
    with pytest.raises(RegardError, match="does not exist"):
        read_frames(f"{sounds_module.MEMORY}1", WANTED)


@pytest.fixture
def clips(tmp_path):
    for name in ("a", "b"):
        soundfile.write(tmp_path / f"{name}.wav", sine(440, 0.2), 8000)
    return tmp_path


def test_manifests_by_tabs_and_json_name_sounds_and_texts(clips):
    (clips / "list.tsv").write_text("file\ttext\na.wav\tone\nb.wav\ttwo three\n")
    (clips / "list.jsonl").write_text('{"sound": "a.wav", "text": "one"}\n{"sound": "b.wav", "text": 2}\n')
    tabs = corpus_of(sounds=str(clips), manifest=str(clips / "list.tsv"), header=True)
    assert list(read(tabs)) == [(f"{clips}/a.wav", "one"), (f"{clips}/b.wav", "two three")]
    lines = corpus_of(sounds=str(clips), manifest=str(clips / "list.jsonl"))
    assert [pair.target for pair in read(lines)] == ["one", "2"]


def test_a_manifest_may_give_paths(clips, monkeypatch):
    """Absolute ones, and relative to the manifest or the working directory; macOS decomposes letters in names."""
    (clips / "b.wav").rename(clips / "Grüße 数.wav")
    monkeypatch.chdir(clips.parent)
    decomposed = unicodedata.normalize("NFD", "Grüße 数.wav")
    names = [f"{clips}/a.wav", f"{clips.name}/a.wav", "./a.wav", f"../{clips.name}/a.wav", decomposed]
    (clips / "list.tsv").write_text("\ufeff" + "".join(f"{name}\tone\r\n\r\n" for name in names))
    found = [pair.source for pair in read(corpus_of(sounds=clips.name, manifest=f"{clips.name}/list.tsv"))]
    assert found == [*4 * [f"{clips.name}/a.wav"], f"{clips.name}/Grüße 数.wav"]


@pytest.mark.parametrize(
    ("name", "content", "wanted"),
    [
        ("x.tsv", "file\ttext\n", "set header: true"),
        ("x.tsv", "c.wav\tone\n", r"x\.tsv:1 names `c\.wav`"),
        ("x.tsv", "a.wav\n", r"x\.tsv:1 has 1 tab-separated columns"),
        ("x.tsv", "a.wav\t \n", r"x\.tsv:1 has no text"),
        ("x.tsv", "../secret.wav\tone\n", "has no such sound"),
        ("x.jsonl", '{"sound": "a.wav"}\n', "no field `text`"),
        ("x.jsonl", '{"sound": 1, "text": "x"}\n', "must be a string"),
        ("x.jsonl", "[1]\n", "must be a JSON object"),
        ("x.jsonl", "{\n", "not valid JSON"),
    ],
)
def test_a_manifest_that_is_wrong_is_refused_with_its_line(clips, name, content, wanted):
    (clips / name).write_text(content)
    with pytest.raises(RegardError, match=wanted):
        list(read(corpus_of(sounds=str(clips), manifest=str(clips / name))))


@pytest.fixture
def recordings(tmp_path):
    for word in "012":
        for speaker in ("anna", "ben"):
            for number in range(2):
                soundfile.write(tmp_path / f"{word}_{speaker}_{number}.wav", sine(300, 0.1), 8000)
    return tmp_path


def test_spoken_words_alone_are_every_recording_once(recordings):
    pairs = list(read(corpus_of(spoken_words=str(recordings), without_speakers=["ben"])))
    assert len(pairs) == 6 and all("_anna_" in name and name.split("/")[-1][0] == word for name, word in pairs)


def test_sequences_of_spoken_words_keep_to_their_settings(recordings):
    settings = {"spoken_words": str(recordings), "min_words": 2, "max_words": 4, "size": 60}
    pairs = list(read(corpus_of(**settings)))
    assert pairs == list(read(corpus_of(**settings))) != list(read(corpus_of(**settings, seed=1)))
    assert len({pair.source for pair in pairs}) == 60
    assert {len(pair.target.split()) for pair in pairs} == {2, 3, 4}
    for name, text in pairs:
        files = [part.split("/")[-1] for part in name.split(" + ")[::2]]
        assert [file[0] for file in files] == text.split() and len({file.split("_")[1] for file in files}) == 1
    frames, _ = read_frames(pairs[0].source, WANTED)
    assert len(frames) >= 10 * len(pairs[0].target.split())


def test_recordings_that_cannot_be_used_are_refused(recordings, tmp_path):
    with pytest.raises(RegardError, match=r"no recordings of speaker `eve`\. It has anna, ben"):
        list(read(corpus_of(spoken_words=str(recordings), speakers=["eve"])))
    with pytest.raises(RegardError, match="leave no speaker"):
        list(read(corpus_of(spoken_words=str(recordings), without_speakers=["anna", "ben"])))
    with pytest.raises(RegardError, match="fewer than 100 different"):
        list(read(corpus_of(spoken_words=str(recordings), min_words=2, max_words=2, speakers=["anna"], size=100)))
    soundfile.write(recordings / "odd.wav", sine(300, 0.1), 8000)
    with pytest.raises(RegardError, match="WORD_SPEAKER_NUMBER"):
        list(read(corpus_of(spoken_words=str(recordings))))
    with pytest.raises(RegardError, match=r"does not exist\. Name a folder"):
        list(read(corpus_of(spoken_words=str(tmp_path / "nowhere"))))


def test_a_store_keeps_features_and_knows_changed_files(clips):
    names = [str(clips / "a.wav"), str(clips / "b.wav")]
    store = SoundStore.build(clips / "store", [*names, names[0]], WANTED)
    assert len(store) == 2 and (store[1] == read_frames(names[1], WANTED)[0]).all()
    assert store.find(names[0]) is not None and store.find("other.wav") is None
    soundfile.write(names[0], sine(900, 0.4), 8000)
    (clips / "b.wav").unlink()
    assert store.find(names[0]) is None  # it was replaced, and must be read again
    assert store.find(names[1]) is not None  # it is gone, and the store is all there is
    (clips / "store" / "frames.uint8").write_bytes(b"123")
    with pytest.raises(RegardError, match="damaged"):
        SoundStore(clips / "store")
    header = json.loads((clips / "store" / "header.json").read_text())
    (clips / "store" / "header.json").write_text(json.dumps({**header, "lengths": [3]}))
    with pytest.raises(RegardError, match="damaged"):
        SoundStore(clips / "store")


def levels(samples):
    return torch.from_numpy(log_mel(samples, 8000, 40)).float() / 255


def test_changed_speed_is_near_what_resampling_gives():
    tone = sine(600, 0.5) + 0.5 * sine(1500, 0.5)
    found = change_speed(levels(tone), 8000, 1.2)
    wanted = levels(resample(tone, 9600, 8000))
    assert abs(len(found) - len(wanted)) <= 2
    peaks = [frames.mean(0).topk(1).indices.item() for frames in (found, wanted)]
    assert abs(peaks[0] - peaks[1]) <= 1 and peaks[1] > levels(tone).mean(0).argmax()
    torch.testing.assert_close(change_speed(levels(tone), 8000, 1.0), levels(tone), atol=1e-4, rtol=0)


def test_noise_lifts_what_is_quiet_and_leaves_what_is_loud():
    frames = torch.zeros(500, 40)
    frames[:, 3] = 1.0
    found = add_noise(frames, 30.0, torch.Generator().manual_seed(1))
    energies = 10 ** ((found[:, 10:] - 1) * 6)
    assert energies.mean().item() == pytest.approx(1e-3, rel=0.05)
    torch.testing.assert_close(found[:, 3], frames[:, 3], atol=1e-3, rtol=0)


def test_an_equaliser_is_near_what_filtering_the_sound_gives():
    generator = np.random.default_rng(1)
    sound = generator.normal(size=8000).astype(np.float32) * np.linspace(0.1, 1, 8000, dtype=np.float32)
    sound[3000:4000] = 0
    frames = levels(sound)
    found = equalise(frames, 15.0, torch.Generator().manual_seed(1))
    curve = (found - frames)[80]  # F: the same gains at all times, from here on relative to the loudest
    assert curve.max() - curve.min() > 0.1
    spectrum = np.fft.rfft(sound)
    centres = mel_to_hertz(np.linspace(0, hertz_to_mel(4000), 42))[1:-1]
    gains = np.interp(np.linspace(0, 4000, len(spectrum)), centres, curve.numpy() * RANGE)
    wanted = levels(np.fft.irfft(spectrum * 10 ** (gains / 20), 8000).astype(np.float32))
    voiced = (frames > 0.2) & (found > 0.2)
    assert voiced.float().mean() > 0.5
    assert ((found - wanted)[voiced].abs() * RANGE).quantile(0.95) < 1.5  # decibels


def test_an_equaliser_keeps_the_loudest_and_silence_and_depends_on_the_generator_alone():
    frames = torch.rand(100, 40)
    frames[30:40] = 0
    found = [equalise(frames, 12.0, torch.Generator().manual_seed(seed)) for seed in (1, 1, 2)]
    assert torch.equal(found[0], found[1]) and not torch.equal(found[0], found[2])
    for changed in found:
        assert changed.max().item() == pytest.approx(1) and changed.min() == 0 and not changed[30:40].any()
    spreads = []
    for seed in range(500):
        changed = equalise(torch.full((2, 40), 0.5), 6.0, torch.Generator().manual_seed(seed))
        spreads.append((changed[0, 0] - changed[0, -1]).item() * RANGE)
    assert np.std(spreads) == pytest.approx(6 * 2**0.5, rel=0.1)
    assert torch.equal(equalise(torch.zeros(3, 4), 12.0, torch.Generator()), torch.zeros(3, 4))
    assert torch.isfinite(equalise(torch.rand(1, 4), 40.0, torch.Generator())).all()


def test_masks_hide_whole_bands_and_frames_and_depend_on_the_generator_alone():
    frames = torch.rand(100, 40)
    found = [hide_stretches(frames, 2, torch.Generator().manual_seed(seed)) for seed in (1, 1, 2)]
    assert torch.equal(found[0], found[1]) and not torch.equal(found[0], found[2])
    hidden = found[0] == frames.mean()
    whole = hidden.all(0)[None, :] | hidden.all(1)[:, None]
    assert hidden.any() and torch.equal(hidden, whole)
    assert hidden.all(0).sum() <= 2 * 8 and hidden.all(1).sum() <= 2 * 10
    assert torch.equal(hide_stretches(frames, 0, torch.Generator()), frames)
    assert torch.isfinite(hide_stretches(torch.rand(1, 4), 3, torch.Generator())).all()


def test_a_mask_hides_at_most_a_second_of_a_long_sound():
    frames = torch.rand(3000, 4)  # 30 seconds; fewer than five bands are never hidden
    widths = []
    for seed in range(50):
        found = hide_stretches(frames, 1, torch.Generator().manual_seed(seed))
        widths.append(int((found == frames.mean()).all(1).sum()))
    assert 80 < max(widths) <= 100
