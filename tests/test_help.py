"""Help, version and quiet: whole sentences by section, no types of Python, and the same program for every verb."""

import re
from pathlib import Path

import pytest

from regard.cli import main
from regard.cli.verbs import SECTIONS, Verbs


def shown(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(arguments) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("verb", Verbs.names)
def test_help_of_every_verb_has_examples_and_no_type_names(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = shown(capsys, "help", verb)
    assert f"Usage: regard {verb}" in text
    assert "xample" in text
    declarations = re.findall(r"^  (-.*?|[A-Z\[].*?)(?:  |$)", text, re.MULTILINE)
    assert not [line for line in declarations if re.search(r"<\w|range>", line)]


def test_the_list_of_verbs_cuts_no_sentence_off(capsys: pytest.CaptureFixture[str]) -> None:
    text = shown(capsys, "--help")
    for section, names in SECTIONS.items():
        assert f"\n{section}:\n" in text
        for name in names:
            first = " ".join(Verbs()[name].help.split("\n\n")[0].split())
            assert first in " ".join(text.split()), name
            assert first.endswith((".", "?")), name


def test_help_follows_the_width_of_the_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    longest = {}
    for width in (60, 100):
        monkeypatch.setenv("COLUMNS", str(width))
        text = shown(capsys, "--help").split("Examples:")[0]
        longest[width] = max(map(len, text.splitlines()))
    assert longest[60] <= 60 < longest[100] <= 100


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert shown(capsys, "-V") == shown(capsys, "--version")


def test_a_misspelt_verb_gets_a_suggestion(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["translat", "x"]) == 2
    assert "translate" in capsys.readouterr().err


def test_quiet_hides_notes_after_any_verb(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("REGARD_QUIET", raising=False)
    config = tmp_path / "copy.yaml"
    config.write_text(
        "data: {train: {generate: copy, size: 300, symbols: 5, max_length: 4}}\n"
        "text: {tokenizer: {kind: words}}\n"
        "model: {width: 16, encoder: {kind: rnn}, decoder: {kind: rnn}}\n"
        "training: {steps: 1, batch_tokens: 256, device: cpu}\n"
    )
    assert main(["train", str(config), "--run", str(tmp_path / "loud")]) == 0
    assert "training: step 1" in capsys.readouterr().err
    assert main(["train", str(config), "--run", str(tmp_path / "quiet"), "--quiet"]) == 0
    errors = capsys.readouterr().err
    assert all(line.startswith("warning:") for line in errors.splitlines())


@pytest.mark.parametrize("installed", [True, False])
def test_missing_packages_are_named_with_a_command_that_works(installed: bool, monkeypatch) -> None:
    """Also in a checkout that is on the path without being installed."""
    from regard.foundation import installation
    from regard.foundation.installation import install_command, packages_of

    def missing(_name: str) -> list[str]:
        raise installation.PackageNotFoundError

    if not installed:
        monkeypatch.setattr(installation, "requires", missing)
    for extra, package in {"plots": "matplotlib", "fast": "ctranslate2", "sound": "soundfile"}.items():
        assert [re.match(r"[\w-]+", line).group() for line in packages_of(extra)] == [package]  # type: ignore[union-attr]
        command = install_command(extra)
        assert "-m pip install" in command and package in command and "regard[" not in command


def test_no_message_recommends_an_extra_of_an_index() -> None:
    sources = (Path(__file__).parent.parent / "regard").rglob("*.py")
    assert not [source for source in sources if re.search(r"pip install ['\"\\]*regard\[", source.read_text("utf-8"))]
