"""BERT directories become runs: the same numbers as `transformers`, on random models; nothing is downloaded."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from regard.cli import main
from regard.config.loading import from_mapping
from regard.config.text import Tokenizer as TokenizerSettings
from regard.formats.from_huggingface import import_run
from regard.foundation.errors import RegardError, UsageError
from regard.runs.run import Run
from regard.tasks.loaded import load_run
from regard.text.learning import train as learn
from regard.text.specials import BOS, EOS, MASK, SEP, SPECIALS, UNK
from regard.text.tokenizer import Tokenizer
from regard.text.wordpiece import MARKS, Folding, WordPieceTokenizer, renumber_pieces
from regard.training.loop import train
from regard.training.view import View

transformers = pytest.importorskip("transformers", reason="needs pip install 'regard[huggingface]'")

PIECES = [
    "[PAD]", "[unused0]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "dog", "cat", "run", "##s", "##ning", "##n",
    "##ing", "sit", "a", "un", "##believ", "##able", "!", ",", ".", "'", "t", "don", "cafe", "好", "w", "##1",
    "##2", "1", "2",
]  # fmt: skip
TEXTS = [
    "the dog runs .",
    "unbelievable , don't run!",
    "a  Café sits",
    "好好 the cat",
    "the xylophone",
    "(dog)",
    "12 w12",
]


def save_bert(directory: Path, kind: str = "BertForMaskedLM", **settings: Any) -> Any:
    """A random BERT as `transformers` saves it, with its vocabulary; the model itself."""
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "vocab.txt").write_text("\n".join(PIECES) + "\n", encoding="utf-8")
    config = transformers.BertConfig(
        **{
            "vocab_size": len(PIECES),
            "hidden_size": 48,
            "num_hidden_layers": 3,
            "num_attention_heads": 4,
            "intermediate_size": 80,
            "max_position_embeddings": 24,
            **settings,
        }
    )
    torch.manual_seed(0)
    model = getattr(transformers, kind)(config).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "LayerNorm" in name or name.endswith("bias"):
                parameter.add_(torch.randn_like(parameter) * 0.1)
    model.save_pretrained(directory)
    return model


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Path]:
    place = tmp_path_factory.mktemp("bert")
    model = save_bert(place / "theirs")
    import_run(place / "theirs", place / "run")
    return model, place / "run"


def old_numbers() -> torch.Tensor:
    return torch.tensor(renumber_pieces(PIECES, "the vocabulary")[1])


def random_texts() -> torch.Tensor:
    """BOS, random tokens, EOS: B×S."""
    torch.manual_seed(1)
    middle = torch.randint(len(SPECIALS), len(PIECES) + 1, (5, 18))
    middle[:, 3] = MASK
    return torch.cat([torch.full((5, 1), BOS), middle, torch.full((5, 1), EOS)], dim=1)


def test_hidden_states_and_guesses_are_those_of_transformers(imported):
    theirs, place = imported
    ours = load_run(place).model
    ids = random_texts()
    with torch.no_grad():
        there = theirs(old_numbers()[ids], output_hidden_states=True)
        states, logits = ours.encode(ids).states, ours(ids)
    torch.testing.assert_close(states, there.hidden_states[-1], atol=1e-4, rtol=0)
    torch.testing.assert_close(logits, there.logits[:, :, old_numbers()], atol=1e-4, rtol=0)
    assert there.hidden_states[-1].std() > 0.1 and there.logits.std() > 0.1


@pytest.mark.parametrize("activation", ["relu", "silu"])
def test_a_plain_encoder_is_imported_whatever_its_activation_and_its_head_is_fresh(activation, tmp_path):
    theirs = save_bert(tmp_path / "theirs", "BertModel", hidden_act=activation)
    run = import_run(tmp_path / "theirs", tmp_path / "run")
    ids = random_texts()
    with torch.no_grad():
        there = theirs(old_numbers()[ids]).last_hidden_state
        states = load_run(tmp_path / "run").model.encode(ids).states
    torch.testing.assert_close(states, there, atol=1e-4, rtol=0)
    assert run.info["head"] == "fresh" and "its predictions are random" in run.card.read_text()


def test_text_is_cut_as_transformers_cuts_it(imported, tmp_path):
    _, place = imported
    ours = Tokenizer.load(place / "tokenizers" / "shared.json")
    (tmp_path / "vocab.txt").write_text("\n".join(PIECES) + "\n", encoding="utf-8")
    theirs = transformers.BertTokenizer.from_pretrained(tmp_path)
    for text in TEXTS:
        wanted = theirs(text, add_special_tokens=False)["input_ids"]
        found = ours.encode(text)
        assert [int(old_numbers()[one]) for one in found.ids] == wanted
        assert ours.encode_batch([text]) == [found.ids]
        for (start, end), word in zip(found.offsets, found.words, strict=True):
            assert text[start:end] in text.split()[word] and start < end
        if UNK not in found.ids:
            assert ours.decode(found.ids) == ours.normalise(text)
    assert ours.kind == "wordpiece" and ours.fingerprint == Tokenizer.load(place / "tokenizers/shared.json").fingerprint
    assert [int(old_numbers()[one]) for one in (BOS, EOS, SEP)] == [PIECES.index(mark) for mark in MARKS[1:3]] + [4]


def test_case_is_kept_where_the_model_keeps_it(tmp_path):
    tokens, _ = renumber_pieces([*PIECES, "Dog"], "the vocabulary")
    cased = WordPieceTokenizer.of_vocabulary(tokens, Folding(lower=False))
    assert cased.encode("Dog dog").tokens == ["▁Dog", "▁dog"]
    save_bert(tmp_path / "theirs")
    (tmp_path / "theirs" / "tokenizer_config.json").write_text(json.dumps({"do_lower_case": False}))
    import_run(tmp_path / "theirs", tmp_path / "run")
    assert Run.open(tmp_path / "run").config.text.tokenizer.lower is False
    assert UNK in load_run(tmp_path / "run").source_tokenizer.encode("The").ids


def test_a_vocabulary_file_can_be_the_tokenizer_of_a_run_of_ones_own(tmp_path):
    (tmp_path / "vocab.txt").write_text("\n".join(PIECES) + "\n", encoding="utf-8")
    settings = TokenizerSettings(kind="wordpiece", model=str(tmp_path / "vocab.txt"), lower=True)
    made = learn(settings, lambda: iter([]), "text.tokenizer")
    assert made.encode("The dogs").tokens == ["▁the", "▁dog", "s"] and made.size == len(PIECES) + 1
    with pytest.raises(UsageError, match="needs a trained model"):
        from_mapping({"data": {"train": {"generate": "copy"}}, "text": {"tokenizer": {"kind": "wordpiece"}}})


def start_from(place: Path, directory: Path, **model: Any) -> dict[str, Any]:
    """A classifier that starts from an imported run, as its card says."""
    import yaml

    given = yaml.safe_load(Run.open(place).card.read_text().split("```yaml")[1].split("```")[0])
    given["model"].update(model)
    said = (("no", "a cat sits"), ("yes", "the dog runs"))
    lines = [f"{said[n % 2][0]} {said[n % 2][1]} w{n % 3}{' a' * (n % 7)}" for n in range(90)]
    (directory / "labelled.txt").write_text("\n".join(lines) + "\n")
    given["data"] = {"train": {"labelled": str(directory / "labelled.txt")}, "held_out": 5}
    given["data"]["cleaning"] = {"duplicates": "keep"}
    course = {"steps": 4, "validate_every": 4, "checkpoint_every": 4, "batch_tokens": 300, "tune": "fresh"}
    return {**given, "task": {"kind": "classification", "pool": "first"}, "training": course}


def test_an_acceptor_starts_from_it_with_all_that_was_learnt(imported, tmp_path):
    _, place = imported
    train(from_mapping(start_from(place, tmp_path)), tmp_path / "run", view=View())
    old, new = (load_run(one) for one in (place, tmp_path / "run"))
    taken = [name for name in new.model.state_dict() if name.startswith(("encoder.", "source_embedding."))]
    assert len(taken) == 3 * 16 + 4 and new.source_tokenizer.fingerprint == old.source_tokenizer.fingerprint
    assert all(torch.equal(old.model.state_dict()[name], new.model.state_dict()[name]) for name in taken)
    assert new.predict("the dog runs").facts["label"] in ("yes", "no")
    assert main(["inspect", "heads", str(tmp_path / "run")]) == 0


def test_an_encoder_that_would_use_the_weights_in_another_way_is_refused(imported, tmp_path):
    settings = start_from(imported[1], tmp_path)
    settings["model"]["encoder"] = {"activation": "relu"}
    with pytest.raises(UsageError, match=r"model.encoder.activation is relu here, but gelu"):
        train(from_mapping(settings), tmp_path / "run", view=View())
    settings = start_from(imported[1], tmp_path, attention={"heads": 2})
    with pytest.raises(UsageError, match=r"model.attention.heads is 2 here, but 4"):
        train(from_mapping(settings), tmp_path / "run", view=View())


def change(directory: Path, **settings: Any) -> None:
    path = directory / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | settings))


def test_what_cannot_be_imported_says_why_and_leaves_nothing(tmp_path, capsys):
    place, run = tmp_path / "theirs", tmp_path / "run"
    save_bert(place)
    capsys.readouterr()  # what transformers says of itself
    whole = json.loads((place / "config.json").read_text())
    for settings, said in (
        ({"model_type": "gpt2"}, "type `gpt2`"),
        ({"hidden_act": "gelu_new"}, "activation `gelu_new`"),
        ({"position_embedding_type": "relative_key"}, "relative_key"),
        ({"hidden_size": None}, "`hidden_size` is missing"),
        ({"num_hidden_layers": 10**9}, "layers is 1000000000"),
        ({"hidden_dropout_prob": "much"}, "`hidden_dropout_prob` is 'much'"),
        ({"num_hidden_layers": 4}, "has 3 layers bert.encoder.layer.…, but config.json declares num_hidden_layers = 4"),
        ({"intermediate_size": 90}, "intermediate.dense.weight is 80×48, but config.json requires 90×48"),
        ({"vocab_size": 99}, "belong to different models"),
    ):
        change(place, **settings)
        assert main(["import", str(place), str(run)]) == 1
        told = capsys.readouterr().err
        assert said in told and told.endswith(".\n") and len(told) < 300 and not run.exists(), told
        (place / "config.json").write_text(json.dumps(whole))
    content = (place / "model.safetensors").read_bytes()
    (place / "model.safetensors").write_bytes(content[: len(content) // 2])
    assert main(["import", str(place), str(run)]) == 1
    assert "is the first incomplete tensor" in capsys.readouterr().err and not run.exists()
    (place / "model.safetensors").write_bytes(content)
    (place / "vocab.txt").write_text("\n".join(["x", *PIECES[1:]]) + "\n")
    with pytest.raises(RegardError, match=r"no \[PAD\]"):
        import_run(place, run)
    (place / "vocab.txt").write_text("\n".join(["the", *PIECES[1:]]) + "\n")
    with pytest.raises(RegardError, match="`the` twice"):
        import_run(place, run)
    (place / "vocab.txt").unlink()
    with pytest.raises(RegardError, match="no vocabulary"):
        import_run(place, run)
    assert not run.exists()


def test_a_tokenizer_json_serves_as_well_as_a_list(imported, tmp_path):
    _, place = imported
    save_bert(tmp_path / "theirs")
    transformers.BertTokenizerFast.from_pretrained(tmp_path / "theirs").save_pretrained(tmp_path / "theirs")
    (tmp_path / "theirs" / "vocab.txt").unlink(missing_ok=True)
    assert (tmp_path / "theirs" / "tokenizer.json").is_file()
    import_run(tmp_path / "theirs", tmp_path / "run")
    one, other = (load_run(each).source_tokenizer for each in (place, tmp_path / "run"))
    assert one.vocabulary == other.vocabulary and one.encode(TEXTS[1]) == other.encode(TEXTS[1])


def test_the_command_line_says_how_to_start_from_it_and_blanks_are_filled(tmp_path, capsys):
    save_bert(tmp_path / "theirs")
    assert main(["import", str(tmp_path / "theirs"), str(tmp_path / "run")]) == 0
    said = capsys.readouterr().out
    assert f"start_from: {tmp_path / 'run'}" in said
    answer = load_run(tmp_path / "run").predict("the ___ runs")
    assert len(answer.facts["blanks"]) == 1 and len(answer.facts["blanks"][0]) == 5
    assert main(["inspect", "attention", str(tmp_path / "run"), "the ___ runs"]) == 0
    assert main(["inspect", "heads", str(tmp_path / "run")]) == 2
    assert "give a --corpus of texts" in capsys.readouterr().err
    (tmp_path / "texts.txt").write_text("the dog runs\na cat sits , unbelievable !\n" * 15)
    assert main(["inspect", "heads", str(tmp_path / "run"), "--corpus", str(tmp_path / "texts.txt"), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert len(said["heads"]) == 12 and said["loss"] > 0 and said["noun"] == "texts of texts.txt"
