"""CTranslate2 computes our cells, and as an engine says what the native one says."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from regard.cli import main
from regard.cli.fast_path import run_fast_path
from regard.engines.choice import open_engine, open_plain_text
from regard.engines.ctranslate2_cache import FORM
from regard.formats import ctranslate2_library
from regard.foundation.errors import RegardError, UsageError
from regard.runs.run import Run
from regard.search import Constraints, Search
from regard.search.steps import mask_special_tokens
from regard.tasks.loaded import load_run
from regard.text.specials import BOS, EOS, SEP
from tests.random_runs import random_run, run_of_two_texts

ctranslate2 = pytest.importorskip("ctranslate2", reason="needs pip install 'regard[fast]'")


from regard.formats.to_ctranslate2 import export_ctranslate2  # noqa: E402

POST = {"norm_place": "post", "activation": "silu", "layers": 2, "feed_forward": 40}
MODERN = {"norm": "rms", "activation": "swiglu", "layers": 2, "feed_forward": 24}
CELLS = {
    "the default": ({}, None),
    "as Marian": ({"encoder": POST, "decoder": POST, "embeddings": {"scale": False}}, None),
    "modern": ({"encoder": MODERN, "decoder": MODERN, "positions": {"kind": "rotary"}}, None),
    "learned positions, gelu": (
        {"encoder": {"activation": "gelu"}, "positions": {"kind": "learned", "max_length": 300}},
        None,
    ),
    "no positions, nothing tied": ({"positions": {"kind": "none"}, "embeddings": {"tie": "none"}}, None),
    "pruned heads": (
        {"pruned": {"encoder.layers.0.attention": [2], "decoder.layers.1.source_attention": []}},
        None,
    ),
    "two vocabularies, two depths": ({"encoder": {"layers": 1}, "decoder": {"layers": 3}}, "characters"),
}
TEXTS = ["a b c", "d", "", "f e d c b a", "a a b"]


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Run:
    """A run of the default cell."""
    return random_run(tmp_path_factory.mktemp("engine") / "run", {})


@pytest.mark.parametrize(("model", "target"), CELLS.values(), ids=CELLS.keys())
def test_an_exported_cell_gives_the_same_log_probabilities(model, target, tmp_path):
    run = random_run(tmp_path / "run", model, target=target)
    export_ctranslate2(run, tmp_path / "ct")
    translator = load_run(run.directory)
    source, said = translator.source_tokenizer.encode("a b c d"), translator.target_tokenizer.encode("c a d b a")
    engine = ctranslate2.Translator(str(tmp_path / "ct"), inter_threads=1, intra_threads=1)
    theirs = engine.score_batch([source.tokens], [said.tokens])[0].log_probs
    with torch.inference_mode():
        logits = translator.model(torch.tensor([[*source.ids, EOS]]), torch.tensor([[BOS, *said.ids]]))[0]
        ours = mask_special_tokens(logits).log_softmax(-1).gather(1, torch.tensor([[*said.ids, EOS]]).T)[:, 0]
    assert torch.allclose(torch.tensor(theirs), ours, atol=1e-4)


def test_the_engine_says_greedily_what_the_native_one_says(run):
    native, fast = (open_engine(name, [run.directory]) for name in ("native", "ctranslate2"))
    assert [[one.tokens for one in best] for best in fast.hypotheses(TEXTS, beam=1)] == [
        [one.tokens for one in best] for best in native.hypotheses(TEXTS, beam=1)
    ]


def test_two_texts_are_told_apart_by_every_engine(tmp_path, capsys):
    run = run_of_two_texts(tmp_path / "run")
    native, fast = (open_engine(name, [run.directory]) for name in ("native", "ctranslate2"))
    texts = ["a b c d\td e", "f a\tc", "a\tb c d d e"]
    assert SEP in fast.source.tokenizer.encode(texts[0]).ids
    said = native.translate(texts, beam=1)
    assert fast.translate(texts, beam=1) == said
    assert open_plain_text("ctranslate2", run.directory, []).translate(texts, 1, None) == said
    lines = tmp_path / "in.tsv"
    lines.write_text(f"{texts[0]}\nalone\n")
    capsys.readouterr()
    assert main(["translate", str(run.directory), str(lines), "--engine", "ctranslate2", "--beam", "1"]) == 1
    written, told = capsys.readouterr()
    assert written.splitlines() == said[:1] and "Line 2 has 1 tab-separated texts" in told


@pytest.mark.parametrize("penalty", [0.0, 0.6, 1.0])
def test_the_score_that_the_engine_reports_is_ours(run, penalty):
    fast = open_engine("ctranslate2", [run.directory])
    for text, best in zip(TEXTS, fast.hypotheses(TEXTS, Search(beam=4, length_penalty=penalty, count=2)), strict=True):
        assert len(best) == len({one.text for one in best}) == (2 if text else 0)
        for one in best:
            if one.ended != "end":
                continue
            source, target = fast.forced(text, one.text)
            with torch.inference_mode():
                scores = mask_special_tokens(fast.model(source, target[:, :-1])[0]).log_softmax(-1)
            total = float(scores.gather(1, target[0, 1:, None]).sum())
            assert one.score == pytest.approx(total / (len(one.tokens) + 1) ** penalty, abs=1e-4)


@pytest.mark.parametrize("tokenizer", ["words", "bpe", "characters"])
@pytest.mark.parametrize(("width", "count"), [(4, 2), (4, 4), (6, 6)])
def test_n_best_lists_of_the_engine_are_as_long_as_asked_for(tokenizer, width, count, tmp_path):
    run = random_run(tmp_path / "run", {}, tokenizer=tokenizer)
    native, fast = (open_engine(name, [run.directory]) for name in ("native", "ctranslate2"))
    for engine in (native, fast):
        for text, best in zip(TEXTS, engine.hypotheses(TEXTS, Search(beam=width, count=count)), strict=True):
            assert len(best) == len({one.text for one in best}) == (count if text else 0)


def test_an_export_is_made_once_and_anew_when_the_weights_change(tmp_path):
    run = random_run(tmp_path / "run", {})
    open_engine("ctranslate2", [run.directory])
    place = run.directory / "engines" / "ctranslate2-float32"
    made = (place / "model.bin").stat().st_mtime_ns
    open_engine("ctranslate2", [run.directory])
    assert (place / "model.bin").stat().st_mtime_ns == made
    weights = {name: tensor + 0.5 for name, tensor in load_run(run.directory).model.state_dict().items()}
    del weights["decoder.embedding.weight"]
    run.save_weights(weights | {"decoder.embedding.weight": torch.randn(18, 32)})
    native, fast = (open_engine(name, [run.directory]) for name in ("native", "ctranslate2"))
    assert (place / "model.bin").stat().st_mtime_ns != made
    assert fast.translate(TEXTS, beam=1) == native.translate(TEXTS, beam=1)
    assert [path.name for path in place.parent.iterdir()] == [place.name]


DAMAGE = {
    "its note": ("regard.json", lambda file: file.write_text("{")),
    "an older note": ("regard.json", lambda file: file.write_text('{"form": 1}')),
    "a note of another kind": ("regard.json", lambda file: file.write_text("[]")),
    "weights cut off": ("model.bin", lambda file: file.write_bytes(file.read_bytes()[:-100])),
    "weights overwritten": ("model.bin", lambda file: file.write_bytes(file.read_bytes()[:-400] + bytes(400))),
    "no weights": ("model.bin", Path.unlink),
    "its configuration": ("config.json", lambda file: file.write_text("{")),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_export_is_made_anew(run, damage):
    said = open_engine("ctranslate2", [run.directory]).translate(TEXTS, beam=1)
    place = run.directory / "engines" / "ctranslate2-float32"
    name, spoil = DAMAGE[damage]
    spoil(place / name)
    assert open_engine("ctranslate2", [run.directory]).translate(TEXTS, beam=1) == said
    assert json.loads((place / "regard.json").read_text())["form"] == FORM


def test_what_the_engine_cannot_do_falls_back_with_a_word(run, capsys):
    native, fast = (open_engine(name, [run.directory]) for name in ("native", "ctranslate2"))
    for search, word in (
        (Search(constraints=Constraints(prefix="b a")), "constraints"),
        (Search(samples=2, count=2, seed=3), "samples"),
        (Search(beam=4, groups=2), "groups"),
        (Search(beam=2, coverage_penalty=0.2), "coverage"),
    ):
        assert fast.translate(TEXTS, search) == native.translate(TEXTS, search)
        assert word in capsys.readouterr().err
    best = fast.hypotheses(["a b"], beam=1)[0][0]
    assert fast.explain("a b", best).attention == native.explain("a b", best).attention
    assert "attention" in capsys.readouterr().err
    assert type(open_engine("ctranslate2", [run.directory], token_scores=True)) is type(native)
    assert type(open_engine("ctranslate2", [run.directory, run.directory])) is not type(fast)


def test_auto_takes_the_fast_engine_where_it_can(run, tmp_path, capsys):
    assert type(open_engine("auto", [run.directory])).__name__ == "CTranslate2Generator"
    other = random_run(tmp_path / "rnn", {"encoder": {"kind": "rnn"}, "decoder": {"kind": "rnn"}})
    assert type(open_engine("auto", [other.directory])).__name__ == "TextGenerator"
    told = capsys.readouterr().err
    assert told.count("\n") == 1 and "model.encoder.kind `rnn`. The native engine is used." in told
    assert not (other.directory / "engines").exists()
    with pytest.raises(RegardError, match=r"model\.encoder\.kind `rnn`"):
        open_engine("ctranslate2", [other.directory])


def test_a_library_that_cannot_be_imported_is_told_and_auto_does_without(tmp_path, monkeypatch, capsys):
    run = random_run(tmp_path / "run", {})
    (tmp_path / "ctranslate2.py").write_text("import a_part_that_is_gone")
    monkeypatch.syspath_prepend(tmp_path)
    for name in [name for name in sys.modules if name.partition(".")[0] == "ctranslate2"]:
        monkeypatch.delitem(sys.modules, name)
    assert type(open_engine("auto", [run.directory])).__name__ == "TextGenerator"
    assert "cannot be imported (No module named 'a_part_that_is_gone')" in capsys.readouterr().err
    with pytest.raises(RegardError, match=r"cannot be imported .*pip install 'ctranslate2"):
        open_engine("ctranslate2", [run.directory])


def test_a_missing_library_says_which_command_installs_it(run, monkeypatch):
    monkeypatch.setitem(sys.modules, "ctranslate2", None)
    with pytest.raises(RegardError, match="-m pip install 'ctranslate2"):
        open_engine("ctranslate2", [run.directory])


def test_a_type_that_the_processor_lacks_is_refused(run, monkeypatch):
    monkeypatch.setattr(ctranslate2, "get_supported_compute_types", lambda device: {"float32"})
    with pytest.raises(RegardError, match="does not support int8"):
        open_engine("ctranslate2-int8", [run.directory])
    with pytest.raises(UsageError, match="not `int4`"):
        export_ctranslate2(run, run.directory / "never", "int4")
    assert not (run.directory / "never").exists()
    assert not ctranslate2_library.supports("int8")


HEAVY = {"torch", "numpy", "pydantic", "typer", "rich", "sacrebleu", "yaml"}
"""What takes long to import, and is of no use for plain text on a fast engine (numpy comes with CTranslate2)."""


def regard_command(*arguments: str, text: str) -> tuple[str, set[str]]:
    """What `regard` prints, and which heavy libraries it needed for that."""
    code = "import sys; from regard.cli import main; main(sys.argv[1:]); print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], input=text, capture_output=True, text=True, check=True
    )
    *lines, modules = done.stdout.splitlines()
    return "\n".join(lines), HEAVY & set(modules.split())


def test_plain_text_goes_through_the_engine_without_torch(run):
    fast = open_engine("ctranslate2", [run.directory])  # and the export is there
    place = str(run.directory)
    said, heavy = regard_command("translate", place, "--engine", "ctranslate2", "--beam", "2", text="\n".join(TEXTS))
    assert said == "\n".join(fast.translate(TEXTS, beam=2))
    assert heavy <= {"numpy"}
    ordinary, heavy = regard_command(
        *("translate", place, "--engine", "ctranslate2", "--beam", "2", "--n-best", "1"), text="\n".join(TEXTS)
    )
    assert ordinary == said and "typer" in heavy and "torch" not in heavy, "the ordinary way says the same"


@pytest.mark.parametrize(
    "words",
    [
        ["--engine", "native"],
        ["--engine", "ctranslate2", "--with", "scores"],
        ["--engine", "ctranslate2", "--beam", "five"],
        ["--engine", "ctranslate2", "--beam", "0"],
        ["--engine", "ctranslate2", "--beam"],
        ["--engine", "ctranslate2", "--help"],
        ["--engine", "warp"],
        [],
    ],
)
def test_what_is_not_a_plain_translation_goes_the_ordinary_way(run, words, capsys):
    assert not run_fast_path(["translate", str(run.directory), *words])
    assert capsys.readouterr().out == ""


def test_a_line_that_is_too_long_is_split_by_the_engine_too(run, capsys, tmp_path):
    (tmp_path / "in.txt").write_text("a b c d. " * 30 + "\na b\n")
    outputs = {}
    for engine in ("native", "ctranslate2"):
        place = [str(run.directory), str(tmp_path / "in.txt"), "--engine", engine, "--beam", "1"]
        assert main(["translate", *place]) == 0
        outputs[engine] = capsys.readouterr().out
    assert outputs["ctranslate2"] == outputs["native"]
    assert outputs["native"].count("\n") == 2


def test_export_and_its_mistakes_on_the_command_line(run, tmp_path, capsys):
    out = tmp_path / "ct"
    assert main(["export", str(run.directory), str(out), "--to", "ctranslate2", "--quantize", "int8"]) == 0
    assert ctranslate2.contains_model(str(out))
    assert main(["export", str(run.directory), str(out), "--to", "ctranslate2"]) == 2
    assert "not an empty directory" in capsys.readouterr().err
    assert main(["export", str(run.directory), str(tmp_path / "x"), "--to", "onnx"]) == 2
    assert main(["translate", str(run.directory), "--engine", "warp"]) == 2


def test_an_unknown_engine_is_refused(run):
    with pytest.raises(UsageError, match="not `warp`"):
        open_engine("warp", [run.directory])


@pytest.mark.parametrize("kind", ["relative", "bias", "alibi"])
def test_a_cell_that_it_cannot_compute_is_refused_by_its_part(kind, tmp_path):
    run = random_run(tmp_path / "run", {"positions": {"kind": kind}})
    with pytest.raises(RegardError, match=f"model.positions.kind `{kind}`"):
        export_ctranslate2(run, tmp_path / "ct")
    assert not (tmp_path / "ct").exists()


IN_COMPANY = """
import random, sys
from pathlib import Path
from regard.engines.plain_text import PlainText

plain = PlainText(Path(sys.argv[1]), [], sys.argv[2])
chance = random.Random(1)
texts = [" ".join(chance.choice("abcdef") for _ in range(chance.randrange(1, 40))) for _ in range(60)]
sources = plain._source.encode_batch(texts)
find = lambda chosen: plain._search.find(chosen, beam=4, count=1, penalty=1.0)
alone = [find([ids])[0] for ids in sources]
assert len({len(best[0].tokens) for best in alone}) > 5
for size in (60, 7):
    together = [best for start in range(0, 60, size) for best in find(sources[start:start + size])]
    assert together == alone, [(a, b) for a, b in zip(alone, together) if a != b][:3]
print("equal")
"""


@pytest.mark.skipif("GenuineIntel" not in Path("/proc/cpuinfo").read_text(), reason="CTranslate2 uses MKL here only")
@pytest.mark.parametrize("quantize", ["float32", "int8"])
def test_outputs_are_equal_bit_by_bit_alone_and_in_company(run, quantize):
    """With MKL's strict reproducible mode; without it, only the last digits of scores may differ.

    The weights are random, so that many outputs reach their length limit: it must not depend on the neighbours.
    """
    command = [sys.executable, "-c", IN_COMPANY, str(run.directory), quantize]
    environment = os.environ | {"MKL_CBWR": "AVX2,STRICT", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.stdout == "equal\n", done.stderr
