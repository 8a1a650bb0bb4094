"""`regard new` with tables that name sounds or pictures: the files are found, and what it writes trains."""

import json
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import soundfile

from regard.cli import main
from regard.config.loading import load
from regard.data.corpus import read
from regard.data.manifest_recognition import MEDIA
from regard.data.pictures import FORMATS as PICTURES
from regard.data.sounds import FORMATS as SOUNDS

COUNT = 24
WORDS = ("low", "mid", "high")
"""Three labels, eight times each, so that they are classes."""


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def sound(path: Path, *, rate: int = 8000, seconds: float = 0.3, frequency: float = 400) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    times = np.arange(round(seconds * rate)) / rate
    soundfile.write(path, (0.5 * np.sin(2 * np.pi * frequency * times)).astype(np.float32), rate)


def clips(folder: str = "clips", *, rate: int = 8000, ending: str = "wav") -> list[str]:
    """Sounds of three frequencies, and their names."""
    for number in range(COUNT):
        sound(Path(folder) / f"{number:02}.{ending}", rate=rate, frequency=300 * (1 + number % 3))
    return [f"{number:02}.{ending}" for number in range(COUNT)]


def labels() -> list[str]:
    return [WORDS[number % 3] for number in range(COUNT)]


def transcripts() -> list[str]:
    return [f"{WORDS[number % 3]} number {number}" for number in range(COUNT)]


def table(path: str, *columns: list[str], header: str = "", separator: str = "\t") -> str:
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    rows = [header] * bool(header) + [separator.join(row) for row in zip(*columns, strict=True)]
    Path(path).write_text("\n".join(rows) + "\n", encoding="utf-8")
    return path


def refusal(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 1) -> str:
    assert main(["new", *arguments]) == code
    assert not list(Path().glob("*.yaml"))
    error = capsys.readouterr().err
    assert "bug in Regard" not in error
    return error


def as_json(path: str, names: list[str], texts: list[str]) -> str:
    lines = [json.dumps({"audio": name, "transcript": text}) for name, text in zip(names, texts, strict=True)]
    Path(path).write_text("\n".join(lines) + "\n")
    return path


WRITERS: dict[str, Callable[[list[str], list[str]], str]] = {
    "tsv": lambda names, texts: table("clips/a.tsv", names, texts),
    "tsv with a header": lambda names, texts: table("clips/a.tsv", names, texts, header="path\tsentence"),
    "tsv with quotation marks": lambda names, texts: table(
        "clips/a.tsv", [f'"{name}"' for name in names], [f'"{text}"' for text in texts], header='"a"\t"b"'
    ),
    "csv": lambda names, texts: table(
        "clips/a.csv", ["x"] * COUNT, names, [f'"{text}"' for text in texts], header="who,file,text", separator=","
    ),
    "json": lambda names, texts: as_json("clips/a.jsonl", names, texts),
}


@pytest.mark.parametrize("form", WRITERS)
@pytest.mark.parametrize("text", ["labels", "transcripts"])
def test_a_table_of_sounds_is_recognised(form: str, text: str, capsys: pytest.CaptureFixture[str]) -> None:
    """In every format; few labels that are repeated often are classes, other texts are transcripts."""
    names, texts = clips(), labels() if text == "labels" else transcripts()
    assert main(["new", WRITERS[form](names, texts)]) == 0
    config = load("a.yaml")
    kind, verb = {
        "labels": ("sound-classification", "echo clips/00.wav | regard predict runs/a"),
        "transcripts": ("speech-recognition", "regard transcribe runs/a clips/00.wav"),
    }[text]
    assert config.task.kind == kind and verb in capsys.readouterr().out
    assert [tuple(pair) for pair in read(config.data.train)] == [
        (f"clips/{name}", text) for name, text in zip(names, texts, strict=True)
    ]


SMALL = ["training.steps=2", "training.validate_every=2", "training.validation_sample=2", "training.device=cpu"]


@pytest.mark.parametrize("text", ["labels", "transcripts"])
def test_what_it_writes_for_sounds_trains(text: str, capfd: pytest.CaptureFixture[str]) -> None:
    names = clips(rate=22_050, ending="flac")
    assert main(["new", table("clips/a.tsv", names, labels() if text == "labels" else transcripts())]) == 0
    encoder = load("a.yaml").model.encoder
    assert encoder is not None and encoder.model_dump()["rate"] == 22_000, "a multiple of 100"
    assert "the files have 22,050" in Path("a.yaml").read_text()
    assert main(["train", "a.yaml", "model.width=16", *SMALL]) == 0
    capfd.readouterr()
    command = ["predict", "runs/a", table("in.txt", ["clips/00.flac"])]
    assert main(command if text == "labels" else ["transcribe", "runs/a", "clips/00.flac"]) == 0
    assert len(capfd.readouterr().out.splitlines()) == 1


@pytest.mark.parametrize(
    ("named", "manifest", "folder"),
    [
        ("wav/{}", "data/a.tsv", "data/wav"),  # relative to the folder of the table
        ("data/wav/{}", "data/a.tsv", "data/wav"),  # relative to the working directory
        ("data/wav/{}", "a.tsv", "data/wav"),  # both
        ("../data/wav/{}", "tables/a.tsv", "data/wav"),
    ],
)
def test_names_are_relative_to_the_table_or_to_the_working_directory(named: str, manifest: str, folder: str) -> None:
    names = clips("data/wav")
    assert main(["new", table(manifest, [named.format(name) for name in names], transcripts())]) == 0
    config = load("a.yaml")
    assert config.data.train.model_dump()["sounds"] == folder
    assert [pair.source for pair in read(config.data.train)] == [f"data/wav/{name}" for name in names]


def test_absolute_names_outside_the_working_directory(here: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    other = tmp_path_factory.mktemp("other")
    names = [str(other / name) for name in clips(str(other))]
    assert main(["new", table("a.tsv", names, transcripts())]) == 0
    assert [pair.source for pair in read(load("a.yaml").data.train)] == names


def test_the_file_that_a_name_means_is_the_one_that_training_reads() -> None:
    """Below the folder that all files share there is another one of the same name: a higher folder is named instead."""
    clips("data/x")
    names = [f"x/{name}" for name in clips("data/x/x")]  # data/x/00.wav, of which there is also data/x/x/00.wav
    assert main(["new", table("data/a.tsv", names, transcripts())]) == 0
    config = load("a.yaml")
    assert config.data.train.model_dump()["sounds"] == "data"
    assert next(read(config.data.train)).source == "data/x/00.wav"


def test_links_to_sounds_keep_their_names(here: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    other = tmp_path_factory.mktemp("other")
    Path("clips").mkdir()
    names = clips(str(other))
    for name in names:
        Path(f"clips/{name}").symlink_to(other / name)
    assert main(["new", table("clips/a.tsv", names, transcripts())]) == 0
    assert load("a.yaml").data.train.model_dump()["sounds"] == "clips"


def test_the_rate_is_that_of_most_files_and_long_sounds_are_allowed() -> None:
    names = clips(rate=16_000)
    sound(Path("clips/00.wav"), seconds=80)
    assert main(["new", table("clips/a.tsv", names, transcripts())]) == 0
    encoder = load("a.yaml").model.encoder
    assert encoder is not None
    assert (encoder.model_dump()["rate"], encoder.model_dump()["bands"]) == (16_000, 80)
    assert encoder.model_dump()["max_seconds"] == 100  # a quarter more
    assert "others are resampled" in Path("a.yaml").read_text()


def test_options_win_over_what_is_recognised(capsys: pytest.CaptureFixture[str]) -> None:
    manifest = table("clips/a.tsv", clips(), labels(), transcripts(), header="file\tone\ttwo")
    assert "clear which is the target. Add --target COLUMN" in refusal(capsys, manifest, code=2)
    assert main(["new", manifest, "--target", "one", "--task", "speech-recognition", "-o", "b.yaml"]) == 0
    assert load("b.yaml").task.kind == "speech-recognition"
    assert main(["new", manifest, "--target", "file", "--source", "two", "-o", "c.yaml"]) == 0
    assert load("c.yaml").task.kind == "translation"
    assert main(["new", manifest, "--source", "file", "--target", "two", "--task", "translation", "-o", "d.yaml"]) == 0
    assert load("d.yaml").task.kind == "translation"


def test_pictures_are_recognised_and_train(capfd: pytest.CaptureFixture[str]) -> None:
    image = pytest.importorskip("PIL.Image")
    Path("photos").mkdir()
    names = [f"{number}.png" for number in range(COUNT)]
    for number, name in enumerate(names):
        image.new("RGB", (20 + number, 30), ("red", "green", "blue")[number % 3]).save(f"photos/{name}")
    assert main(["new", table("photos/a.csv", names, transcripts(), header="image,caption", separator=",")]) == 0
    assert main(["new", table("photos/b.tsv", names, labels())]) == 0
    assert (load("a.yaml").task.kind, load("b.yaml").task.kind) == ("captioning", "image-classification")
    assert main(["train", "a.yaml", "model.width=16", "model.encoder.size=16", "model.attention.heads=2", *SMALL]) == 0
    assert main(["train", "b.yaml", "model.width=16", "model.encoder.size=16", *SMALL]) == 0
    capfd.readouterr()
    assert main(["caption", "runs/a", "photos/0.png"]) == 0
    Path("photos/more.png").write_bytes(Path("photos/0.png").read_bytes())
    assert "pictures without a caption: more.png" in refusal_of(capfd, "photos/b.tsv", "-o", "c.yaml")


def refusal_of(capfd: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["new", *arguments]) == 1
    return capfd.readouterr().err


@pytest.mark.parametrize(
    ("extra", "wanted"),
    [
        (("gone.wav", "text"), "1 of 25 do not exist, such as `gone.wav`"),
        (("", "text"), "such as `(empty)`"),
        (("00.wav", " "), "a.tsv:25 has no text for `00.wav`"),
        (("bad.wav", "text"), "clips/bad.wav cannot be read as WAV"),
        (("song.mp3", "text"), "`song.mp3` is not WAV, FLAC or OGG"),
        (("../secret", "text"), "`../secret`"),
    ],
)
def test_rows_that_cannot_be_used_are_refused(
    extra: tuple[str, str], wanted: str, capsys: pytest.CaptureFixture[str]
) -> None:
    names = clips()
    Path("clips/bad.wav").write_bytes(b"RIFF")
    Path("clips/song.mp3").write_bytes(b"x")
    manifest = table("clips/a.tsv", [*names, extra[0]], [*transcripts(), extra[1]])
    assert wanted in refusal(capsys, manifest)


def test_sounds_without_texts_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    names = clips()
    with zipfile.ZipFile("clips.zip", "w") as archive:
        archive.write("clips/00.wav")
    assert "clips is a folder of sounds, and texts or labels are needed" in refusal(capsys, "clips", code=2)
    assert "clips.zip is a zip file of sounds" in refusal(capsys, "clips.zip", code=2)
    assert "clips/00.wav is a sound" in refusal(capsys, "clips/00.wav", code=2)
    table("names.txt", [f"clips/{name}" for name in names])
    table("texts.txt", transcripts())
    assert "Write one table (.tsv)" in refusal(capsys, "names.txt", "texts.txt", code=2)
    inside = table("in.tsv", ["clips.zip/clips/00.wav"], ["text"])
    assert "Unpack clips.zip" in refusal(capsys, inside)
    (Path("empty")).mkdir()
    assert "empty is a directory" in refusal(capsys, "empty", code=2)


def test_a_table_of_names_of_missing_files_may_be_texts(capsys: pytest.CaptureFixture[str]) -> None:
    manifest = table("a.csv", [f"song_{n}.wav" for n in range(50)], [f"Song {n}" for n in range(50)], separator=",")
    assert "none of them exists" in (error := refusal(capsys, manifest)) and "--task translation" in error
    assert main(["new", manifest, "--task", "translation"]) == 0
    assert load("a.yaml").task.kind == "translation"


def test_a_task_of_sounds_needs_sounds(capsys: pytest.CaptureFixture[str]) -> None:
    texts = table("a.csv", ["x"] * 9, labels()[:9], separator=",")
    assert "needs the names of sounds" in refusal(capsys, texts, "--task", "speech-recognition", code=2)
    manifest = table("clips/b.tsv", clips(), labels())
    assert "needs the names of pictures" in refusal(capsys, manifest, "--task", "captioning", code=2)


def test_the_endings_of_media_are_those_of_formats_that_are_read() -> None:
    """JPEG has two endings, and two formats of WAV files have that of WAV."""
    sounds, pictures = ({ending.removeprefix(".").upper() for ending in medium.endings} for medium in MEDIA)
    assert sounds == set(SOUNDS) - {"WAVEX", "RF64"} and pictures - {"JPG"} == set(PICTURES)
