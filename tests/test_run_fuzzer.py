"""A run is untrusted input: whatever is done to its files, it is refused in a sentence or used as before."""

import json
import os
import resource
import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from regard.cli import main
from regard.config.text import Tokenizer as Settings
from regard.foundation import durable
from regard.foundation.errors import RegardError
from regard.runs.checkpoints import Checkpoints
from regard.runs.manifest import Digest, Manifest
from regard.runs.records import DamagedFile, read_file, seal
from regard.runs.run import Run
from regard.text.learning import train as learn
from regard.text.tokenizer import Tokenizer
from tests.run_fuzzer import Fuzzer, make_runs

MUTATIONS = 200
PARTS = 8


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> list[Path]:
    return make_runs(tmp_path_factory.mktemp("made"))


@pytest.fixture(scope="module")
def fuzzer(made, tmp_path_factory) -> Fuzzer:
    return Fuzzer(made, tmp_path_factory.mktemp("fuzzed") / "tried")


@pytest.fixture
def run(made, tmp_path) -> Path:
    """A copy of a finished translation run."""
    shutil.copytree(made[0], tmp_path / "run")
    return tmp_path / "run"


@pytest.mark.parametrize("part", range(PARTS))
def test_mutated_runs_are_refused_or_used_as_before(fuzzer, part):
    for seed in range(part * MUTATIONS // PARTS, (part + 1) * MUTATIONS // PARTS):
        fuzzer.try_one(1_000_000 + seed)


@pytest.mark.parametrize("seed", [704745])  # a tokenizer with a prefix, on which the library panicked
def test_what_the_long_run_found_stays_fixed(fuzzer, seed):
    fuzzer.try_one(seed)


@pytest.mark.parametrize("kind", ["bpe", "unigram", "characters", "words"])
@pytest.mark.parametrize(
    "change",
    [
        {"decoder": None}, {"normalizer": None}, {"pre_tokenizer": None},
        {"model.unk_token": None, "model.unk_id": None}, {"model.continuing_subword_prefix": "x" * 10_000},
        {"model.end_of_word_suffix": "x"}, {"model.dropout": 0.5},
        {"decoder": {"type": "Sequence", "decoders": 3}}, {"model.vocab": {}}, {"added_tokens": [3]},
    ],
    ids=str,
)  # fmt: skip
def test_a_hostile_tokenizer_is_refused_when_it_is_loaded(kind, change, tmp_path, capfd):
    settings = Settings.model_validate({"kind": kind, "min_frequency": 1})
    learn(settings, lambda: iter(["a b c 8", "c d e"] * 20), "test").save(tmp_path / "t.json")
    Tokenizer.load(tmp_path / "t.json")
    content = json.loads((tmp_path / "t.json").read_text())
    for key, value in change.items():
        section, _, name = key.rpartition(".")
        (content[section] if section else content)[name] = value
    (tmp_path / "t.json").write_text(json.dumps(content))
    with pytest.raises(RegardError, match=r"t\.json"):
        Tokenizer.load(tmp_path / "t.json")
    assert not capfd.readouterr().err


def test_a_write_is_not_redirected_by_a_link_that_was_prepared(tmp_path):
    secret, target = tmp_path / "secret", tmp_path / "run.json"
    secret.write_text("mine")
    (tmp_path / ".run.json.aside").symlink_to(secret)
    target.symlink_to(secret)
    durable.write(target, "new")
    assert secret.read_text() == "mine" and target.read_text() == "new" and not target.is_symlink()


def test_resuming_a_prepared_run_writes_nothing_outside_it(run, tmp_path, capsys):
    secret = tmp_path / "secret"
    secret.write_text("mine")
    for name in ("run.json", "config.yaml", "metrics.jsonl", "README.md"):
        (run / f".{name}.aside").symlink_to(secret)
    assert main(["train", "--resume", str(run), "training.steps=13"]) == 1
    assert "leads out of the run" in capsys.readouterr().err
    assert secret.read_text() == "mine"


@pytest.mark.parametrize("pointer", ["{outside}", "../../outside", "step-00000012/../../../outside"])
def test_the_pointer_to_the_newest_checkpoint_cannot_leave_the_run(run, tmp_path, pointer):
    outside = tmp_path / "outside"
    shutil.copytree(run / "checkpoints" / "step-00000012", outside)
    (run / "checkpoints" / "latest").write_text(pointer.format(outside=outside))
    weights = run / "checkpoints" / "step-00000012/model.safetensors"
    assert Checkpoints(run / "checkpoints").latest_weights() == (weights, weights.stat().st_size)


def test_weights_of_an_unfinished_run_are_compared_with_their_checksum(run):
    opened = Run.open(run)
    opened.note(status="stopped")
    manifest = Manifest.load(run)
    del manifest.files["model.safetensors"]
    manifest.save(run)
    (run / "model.safetensors").unlink()
    newest = opened.weights
    content = bytearray(newest.read_bytes())
    content[-1] ^= 1
    newest.write_bytes(content)
    assert opened.weights == run / "checkpoints" / "step-00000006" / "model.safetensors"


@pytest.mark.parametrize("name", ["train/source.tokens", "validation/target.offsets", "validation.jsonl"])
def test_changed_training_data_are_not_trained_on(run, name, capsys):
    path = run / "data" / name
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    assert main(["train", "--resume", str(run), "training.steps=13"]) == 1
    complaint = capsys.readouterr().err
    assert str(path.name) in complaint and "bug in Regard" not in complaint


def test_an_id_outside_the_vocabulary_is_refused(run, capsys):
    import zlib

    store = run / "data" / "train"
    content = (store / "source.tokens").read_bytes()[:-2] + (60_000).to_bytes(2, "little")
    (store / "source.tokens").write_bytes(content)
    header = json.loads((store / "header.json").read_text())
    header["files"]["source.tokens"]["crc32"] = zlib.crc32(content)
    (store / "header.json").write_text(json.dumps(header))
    manifest = Manifest.load(run)
    manifest.files["data/train/header.json"] = [Digest.of(store / "header.json")]
    manifest.save(run)
    assert main(["train", "--resume", str(run), "training.steps=13"]) == 1
    assert "the id 60000" in capsys.readouterr().err


@pytest.mark.parametrize("damage", ["type", "missing", "directory"])
def test_a_damaged_state_falls_back_to_the_checkpoint_before(run, damage, capsys):
    path = run / "checkpoints" / "step-00000012" / "state.json"
    content = json.loads(path.read_text())
    if damage == "directory":
        path.unlink()
        path.mkdir()
    else:
        changed = {"waited": "many"} if damage == "type" else {}
        state = {key: value for key, value in content["state"].items() if damage == "type" or key != "cursor"}
        path.write_text(json.dumps(seal(content | {"state": state | changed})))
    assert main(["train", "--resume", str(run), "training.steps=13"]) == 0
    assert "Using the one before it" in capsys.readouterr().err
    assert Run.open(run).info["step"] == 13


@pytest.mark.parametrize("content", ["[" * 100_000, '{"format": [2]}', '{"format": 1, "status": 3}', "[]", '"x"'])
def test_a_hostile_run_json_is_refused(run, content):
    (run / "run.json").write_text(content)
    with pytest.raises(RegardError, match=r"run\.json"):
        Run.open(run)


def put_weights(run, weights, metadata=None):
    save_file(weights, run / "model.safetensors", metadata=metadata)
    manifest = Manifest.load(run)
    manifest.files["model.safetensors"] = [Digest.of(run / "model.safetensors")]
    manifest.save(run)


@pytest.mark.parametrize(("value", "says"), [("nan", "not finite"), ("inf", "not finite"), ("int8", "int8 numbers")])
def test_weights_that_are_not_finite_floats_are_refused(run, value, says, capsys):
    weights = load_file(run / "model.safetensors")
    name = next(name for name, tensor in weights.items() if tensor.dim() == 2)
    if value == "int8":
        weights[name] = (weights[name] * 100).to(torch.int8)
    else:
        weights[name][0, 0] = float(value)
    put_weights(run, weights)
    assert main(["translate", str(run), os.devnull]) == 1
    assert says in capsys.readouterr().err


@pytest.mark.parametrize("metadata", ["[" * 100_000, "3", '{"tokenizers": 3}'])
def test_hostile_metadata_of_weights_are_refused(run, metadata, capsys):
    put_weights(run, load_file(run / "model.safetensors"), {"regard": metadata})
    assert main(["translate", str(run), os.devnull]) == 1
    assert "metadata" in (complaint := capsys.readouterr().err) or "damaged" in complaint
    assert "bug in Regard" not in complaint


@pytest.fixture
def bounded_memory():
    """At most 4 GB more than now, so that a model that is built all the same takes no other process down."""
    limits = resource.getrlimit(resource.RLIMIT_AS)
    used = Path("/proc/self/statm")
    if used.exists():
        now = int(used.read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (now + (4 << 30), limits[1]))
    yield
    resource.setrlimit(resource.RLIMIT_AS, limits)


@pytest.mark.usefixtures("bounded_memory")
def test_a_model_that_does_not_fit_the_weights_costs_no_memory(run, capsys):
    config = (run / "config.yaml").read_text().replace("width: 16", "width: 60000")
    (run / "config.yaml").write_text(config)
    assert main(["runs", str(run), "--accept-changes"]) == 0
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for command in (["translate", str(run), os.devnull], ["train", "--resume", str(run), "training.steps=13"]):
        assert main(command) == 1
        assert "do not belong to this model" in capsys.readouterr().err
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 500_000  # kilobytes


def test_a_flipped_bit_in_any_file_that_counts_is_found(run, capsys):
    kept = {"README.md", "metrics.jsonl", "curves.png", ".lock", "latest"}
    assert main(["runs", str(run), "--verify"]) == 0
    for path in sorted(path for path in run.rglob("*") if path.is_file() and path.name not in kept):
        content = path.read_bytes()
        if content:
            changed = bytearray(content)
            changed[len(content) // 3] ^= 4
            path.write_bytes(changed)
            assert main(["runs", str(run), "--verify"]) == 1, path
            path.write_bytes(content)
    assert main(["runs", str(run), "--verify"]) == 0


def test_verifying_says_what_was_not_compared(capsys, tmp_path):
    from tests.stored_runs import FIXTURES

    assert main(["runs", str(FIXTURES / "format-1" / "classes"), "--verify"]) == 0
    assert "run format 1 has no other checksums" in capsys.readouterr().out
    assert main(["runs", str(tmp_path), "--verify"]) == 2
    assert "no run in" in capsys.readouterr().err


def test_a_change_on_purpose_is_accepted(run, capsys):
    config = run / "config.yaml"
    config.write_text(config.read_text().replace("beam: 5", "beam: 3"))
    assert main(["translate", str(run), os.devnull]) == 1
    assert "--accept-changes" in capsys.readouterr().err
    assert main(["runs", str(run), "--accept-changes"]) == 0
    assert "config.yaml" in capsys.readouterr().out
    assert main(["translate", str(run), os.devnull]) == 0


def test_a_pipe_in_place_of_a_file_does_not_hang(tmp_path):
    os.mkfifo(tmp_path / "run.json")
    with pytest.raises(DamagedFile, match="not a regular file"):
        read_file(tmp_path / "run.json")
