"""A probe tells what a layer knows only beside what it would say of nothing: every comparison is a law here."""

import json
import math

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from regard import inspection
from regard.cli.verbs import app
from regard.foundation.errors import RegardError, UsageError
from regard.inspection.analyses.probe import codelength
from regard.inspection.analyses.probe import compute as probing
from regard.inspection.analyses.probe.codelength import blocks, online_code
from regard.inspection.analyses.probe.compute import build_untrained, control_labels
from regard.inspection.probes import Examples, train_probes
from regard.inspection.states import Reading, layer_taps, word_states
from regard.tasks.loaded import load_run
from regard.text.specials import EOS
from tests.cells import model_of

LABELS, LAYERS, WIDTH = 4, 3, 12


@pytest.fixture(scope="module")
def planted() -> tuple[Examples, Examples, Examples]:
    """Words of four kinds: their states are the kind's vector and noise, more of it in higher layers."""
    generator = torch.Generator().manual_seed(3)
    labels = torch.randint(LABELS, (1500,), generator=generator)
    centres = torch.randn(LABELS, WIDTH, generator=generator)
    noise = torch.randn(LAYERS, 1500, WIDTH, generator=generator) * torch.tensor([0.1, 0.3, 0.5])[:, None, None]
    whole = Examples(centres[labels] + noise, labels)
    return whole.first(900), whole.between(900, 1100), whole.between(1100, 1500)


def shuffled(examples: Examples) -> Examples:
    order = torch.randperm(len(examples), generator=torch.Generator().manual_seed(5))
    return Examples(examples.states, examples.labels[order])


@pytest.mark.parametrize("hidden", [None, 16])
def test_a_probe_finds_what_is_there_and_shuffled_labels_by_chance_only(planted, hidden):
    train, stop, test = planted
    assert min(train_probes(train, stop, LABELS, hidden).accuracy(test)) > 0.95
    blind = train_probes(shuffled(train), shuffled(stop), LABELS, hidden).accuracy(shuffled(test))
    majority = torch.bincount(test.labels).max() / len(test)
    assert max(blind) < majority + 4 * (0.25 * 0.75 / len(test)) ** 0.5


@pytest.mark.parametrize("hidden", [None, 16])
def test_layers_trained_side_by_side_are_those_trained_alone(planted, hidden):
    train, stop, _ = planted
    together = train_probes(train.first(300), stop, LABELS, hidden)
    for layer in range(LAYERS):
        alone = train_probes(
            Examples(train.states[layer : layer + 1, :300], train.labels[:300]),
            Examples(stop.states[layer : layer + 1], stop.labels),
            LABELS,
            hidden,
        )
        for one, other in zip(alone.parameters, together.parameters, strict=True):
            torch.testing.assert_close(one[0], other[layer], rtol=1e-3, atol=1e-4)


def test_labels_that_states_do_not_tell_cost_two_bits_each_and_those_they_tell_little(planted):
    train, stop, _ = planted
    ends = blocks(range(0, len(train), 5), len(train))
    for examples, dev, low, high in ((shuffled(train), shuffled(stop), 1.9, 2.3), (train, stop, 0.0, 0.5)):
        last = train_probes(examples, dev, LABELS, None)
        code = online_code(examples, dev, ends, LABELS, None, last, starts=range(0, len(train), 5))
        for interval, bits in ((code.intervals, code.bits), (code.data_intervals, code.data)):
            assert all(0 <= first < value < last for (first, last), value in zip(interval, bits, strict=True))
        assert code.uniform == len(train) * math.log2(LABELS)
        for bits, factor in zip(code.bits, code.compression, strict=True):
            assert low < bits / len(train) < high
            assert factor == pytest.approx(code.uniform / bits)


def test_intervals_of_code_lengths_hold_the_truth_as_often_as_they_say():
    """Words of one sentence cost alike: intervals over words instead of sentences would be far too narrow."""
    random = np.random.default_rng(3)
    hits = 0
    for _ in range(200):
        lengths = random.integers(3, 12, 60)
        bits = np.repeat(random.gamma(2.0, 0.5, 60), lengths)  # the mean of a word is 1 bit
        starts = np.cumsum([0, *lengths])[:-1].tolist()
        ((low, high),) = codelength._intervals(torch.from_numpy(bits)[None], starts)
        hits += low <= len(bits) <= high
    assert 180 <= hits <= 200
    assert codelength._intervals(torch.ones(1, 5, dtype=torch.float64), [0]) == [None]


def test_blocks_end_where_sentences_begin_and_the_last_is_everything():
    starts = [0, 7, 19, 40, 41, 80, 300, 512]
    ends = blocks(starts, 1000)
    assert ends[-1] == 1000 and set(ends[:-1]) <= set(starts[1:])
    assert ends == sorted(set(ends))


def test_a_control_label_belongs_to_the_word_and_not_to_its_place():
    words = ["a", "b", "a", "c", "b", "a"] * 50
    labels = torch.tensor([0, 1, 2, 0, 0, 1] * 50)
    drawn = control_labels(words, labels, seed=2)
    assert all(len({int(one) for one, word in zip(drawn, words, strict=True) if word == kind}) == 1 for kind in "abc")
    many = control_labels([str(number) for number in range(6000)], labels, seed=2)
    shares = torch.bincount(many, minlength=3) / 6000
    torch.testing.assert_close(shares, torch.tensor([3, 2, 1]) / 6, atol=0.03, rtol=0)


ENCODERS = [
    "bag>elman/initial",
    "gru-both>gru/before",
    "conv>conv/attention",
    "transformer>transformer/attention",
    "narrow",
]


@pytest.mark.parametrize("name", ENCODERS)
@pytest.mark.parametrize("decoder", [False, True])
def test_neither_company_nor_padding_changes_the_state_of_a_word(name, decoder):
    model = model_of(name)
    ids = [[9, 7, 8, 12, 11, 6], [8, 9], [7, 7, 10, 13]]
    words = [[[0], [1, 2], [5]], [[0, 1]], [[1], [2], [0, 3]]]
    readings = [Reading(row, row[::-1] if decoder else None, places) for row, places in zip(ids, words, strict=True)]
    together = word_states(model, readings, task="")
    alone = torch.cat([word_states(model, [one], task="") for one in readings], dim=1)
    assert together.shape[:2] == (len(layer_taps(model, "decoder" if decoder else "encoder")), 7)
    torch.testing.assert_close(together, alone, rtol=1e-4, atol=1e-5)
    last = word_states(model, readings, pool="last", task="")
    torch.testing.assert_close(last[:, [0, 4]], together[:, [0, 4]])  # words of one token
    assert not torch.allclose(last[:, 1], together[:, 1])


def test_the_first_layer_is_what_the_model_reads_and_the_last_what_it_remembers():
    model = model_of("conv>conv/attention")
    states = word_states(model, [Reading([9, 7, 8], None, [[0], [1], [2]])], task="")
    with torch.no_grad():
        memory = model.encode(torch.tensor([[9, 7, 8, EOS]]))
    torch.testing.assert_close(states[-1], memory.states[0, :3])


def test_an_untrained_model_has_the_shape_and_nothing_of_the_weights(transformer_run):
    translator = load_run(transformer_run)
    model = translator.model
    state = torch.get_rng_state()
    other = build_untrained(translator, seed=1)
    assert torch.equal(torch.get_rng_state(), state)
    shapes = {name: one.shape for name, one in model.named_parameters()}
    assert {name: one.shape for name, one in other.named_parameters()} == shapes
    assert len(other.output_bias) == len(model.output_bias)
    assert not torch.allclose(other.source_embedding.weight, model.source_embedding.weight)


def table(path, sentences: int = 60) -> None:
    """Letters, each with itself and with the letter before it as labels."""
    generator = torch.Generator().manual_seed(1)
    lines = []
    for _ in range(sentences):
        letters = ["abcdef"[int(one)] for one in torch.randint(6, (4,), generator=generator)]
        lines += [f"{letter}\t{letter}\t{before}" for letter, before in zip(letters, ["-", *letters], strict=False)]
        lines.append("")
    path.write_text("\n".join(lines), encoding="utf-8")


@pytest.fixture(scope="module")
def probed(transformer_run, tmp_path_factory):
    """What the layers of a small Transformer know of the letter before."""
    path = tmp_path_factory.mktemp("probe") / "letters.tsv"
    table(path, 150)
    return inspection.probe(load_run(transformer_run), path, "3")


def test_the_embedding_knows_its_letter_but_not_the_one_before(transformer_run, probed, tmp_path):
    table(tmp_path / "letters.tsv")
    same = inspection.probe(load_run(transformer_run), tmp_path / "letters.tsv", "2")
    assert same.curves["linear"].accuracy[0] == same.per_word == 1.0
    assert same.majority < 0.5
    context = probed.curves["mlp"]
    assert max(context.accuracy[1:]) > context.accuracy[0] + 0.1  # attention brings it in
    assert min(context.code.bits[1:]) < context.code.bits[0]


def test_words_and_sentences_are_counted_once(probed):
    assert sum(probed.sentences.values()) + probed.repeated == 150
    assert sum(count for count, *_ in probed.by_label.values()) == probed.words["test"]
    found = sum(count * shares[-1] for count, shares, _ in probed.by_label.values()) / probed.words["test"]
    assert found == pytest.approx(probed.curves["mlp"].accuracy[-1])
    facts = probed.to_json()["probes"]["mlp"]
    differences = [a - c for a, c in zip(facts["accuracy"], facts["control"], strict=True)]
    assert facts["selectivity"] == pytest.approx(differences)


@pytest.mark.parametrize("ending", ["html", "json", "txt", "png"])
def test_what_was_found_is_saved(probed, tmp_path, ending):
    if ending == "png":
        pytest.importorskip("matplotlib", reason="the plots extra is not installed")
    probed.save(tmp_path / f"probe.{ending}")
    assert (tmp_path / f"probe.{ending}").stat().st_size > 500


def test_the_page_switches_probes_and_tells_every_label(probed, tmp_path, browser):
    probed.save(tmp_path / "probe.html")
    browser.get((tmp_path / "probe.html").as_uri())
    cells = lambda: [one.text for one in browser.find_elements("css selector", "table tbody tr:first-child td")]  # noqa: E731
    assert cells()[1] == f"{100 * probed.curves['mlp'].accuracy[0]:.1f}"
    browser.find_element("xpath", "//button[text()='linear']").click()
    assert cells()[1] == f"{100 * probed.curves['linear'].accuracy[0]:.1f}"
    assert len(browser.find_elements("css selector", "svg polyline")) == 9
    assert len(browser.find_elements("css selector", "svg polygon.band")) == 6
    low, high = probed.curves["linear"].code.intervals[0]
    assert f"{low / 1000:.2f} to {high / 1000:.2f}" in cells()
    assert not [one for one in browser.get_log("browser") if one["level"] == "SEVERE"]


def test_the_decoder_is_asked_with_sources(transformer_run, tmp_path):
    table(tmp_path / "letters.tsv", 40)
    blocks = (tmp_path / "letters.tsv").read_text().strip().split("\n\n")
    sources = [" ".join(line.split("\t")[0] for line in block.splitlines()) for block in blocks]
    (tmp_path / "sources.txt").write_text("\n".join(sources) + "\n", encoding="utf-8")
    run = load_run(transformer_run)
    found = inspection.probe(run, tmp_path / "letters.tsv", "2", sources=tmp_path / "sources.txt")
    assert found.side == "decoder" and found.curves["linear"].accuracy[0] == 1.0
    (tmp_path / "few.txt").write_text("a b\n", encoding="utf-8")
    with pytest.raises(RegardError, match="1 lines for 40 sentences"):
        inspection.probe(run, tmp_path / "letters.tsv", "2", sources=tmp_path / "few.txt")


def test_no_sentence_is_learned_from_and_measured_on(copy_run, tmp_path):
    table(tmp_path / "letters.tsv", 150)
    run = load_run(copy_run)
    split = probing._split(run, tmp_path / "letters.tsv", "2", dev=None, sources=None, most=None, seed=1, progress=None)
    rows = [tuple(one.ids) for part in split.parts.values() for one, _ in part]
    assert len(rows) == len(set(rows)) and len(rows) + split.repeated == 150
    blocks = (tmp_path / "letters.tsv").read_text().strip().split("\n\n")
    (tmp_path / "twice.tsv").write_text("\n\n".join(blocks * 2) + "\n", encoding="utf-8")
    twice = probing._split(run, tmp_path / "twice.tsv", "2", dev=None, sources=None, most=None, seed=1, progress=None)
    assert sum(map(len, twice.parts.values())) == len(rows) and twice.repeated == split.repeated + 150
    (tmp_path / "dev.tsv").write_text("\n\n".join(blocks[:20]) + "\n", encoding="utf-8")
    held = probing._split(
        run, tmp_path / "letters.tsv", "2", dev=tmp_path / "dev.tsv", sources=None, most=None, seed=1, progress=None
    )
    test = {tuple(one.ids) for one, _ in held.parts["test"]}
    assert len(test) == len(held.parts["test"]) == len(set(blocks[:20]))
    assert not test & {tuple(one.ids) for name in ("train", "stop") for one, _ in held.parts[name]}
    with pytest.raises(RegardError, match=r"different sentences .* at least 30"):
        inspection.probe(run, tmp_path / "letters.tsv", "2", dev=tmp_path / "letters.tsv")


def test_every_accuracy_has_an_interval_over_test_sentences(probed):
    facts = json.loads(json.dumps(probed.to_json()))
    for one in facts["probes"].values():
        for figure in ("accuracy", "control", "selectivity", "untrained"):
            for value, (low, high) in zip(one[figure], one["intervals"][figure], strict=True):
                assert low <= value + 1e-9 and value - 1e-9 <= high
        for figure in ("bits", "data_bits", "compression", "control_bits", "untrained_bits"):
            for value, (low, high) in zip(one[figure], one["intervals"][figure], strict=True):
                assert 0 <= low <= value <= high and low < high
    for label in facts["by_label"]:
        assert all(
            low <= share + 1e-9 <= high + 2e-9
            for share, (low, high) in zip(label["found"], label["intervals"], strict=True)
        )
    assert "95 % of accuracy" in str(probed)
    low, high = probed.curves["mlp"].code.intervals[0]
    assert "95 % of kbit" in str(probed) and f"{low / 1000:.1f}–{high / 1000:.1f}" in str(probed)
    low, high = probed.curves["mlp"].code.compression_intervals[0]
    assert f"{low:.2f}–{high:.2f}" in str(probed)
    if probed.repeated:
        assert f"{probed.repeated} repeated sentences were left out" in str(probed)


ROW = "{}\t{}\ta\tNOUN\tNN\tNumber=Sing\t0\troot\t_\t_\n"
CONLLU = "1\ta\ta\tNOUN\tNN\tNumber=Sing\t0\troot\t_\t_\n\n"


@pytest.mark.parametrize(
    ("name", "content", "wanted", "message"),
    [
        ("a.conllu", CONLLU * 40, "Tense", "upos, xpos, deprel, Number"),
        (
            "a.conllu",
            "".join(ROW.format(1, a) + ROW.format(2, b) + "\n" for a in "abcdef" for b in "abcdef"),
            "upos",
            "nothing to tell apart",
        ),
        ("a.conllu", CONLLU * 40, "upos", "1 different sentences .* at least 30"),
        ("a.conllu", CONLLU * 5, "upos", "5 sentences .* at least 30"),
        ("a.conllu", "a b c\n", "upos", "a.conllu:1 has 1 tab-separated"),
        (
            "a.conllu",
            CONLLU + CONLLU.replace("1", "2", 1),
            "upos",
            r'a.conllu:3: .* line 3 \("a"\) are out of order: "2"',
        ),
        ("a.conllu", CONLLU.replace("1", "1-3", 1), "upos", "out of order"),
        ("a.tsv", "a\tx\n\nb\n", "2", "a.tsv:3 has 1 tab-separated"),
        ("a.tsv", "a\tx\n", "upos", "no column of labels"),
        ("a.tsv", "", "2", "property"),
    ],
)
def test_a_corpus_that_cannot_be_used_says_why(copy_run, tmp_path, name, content, wanted, message):
    (tmp_path / name).write_text(content, encoding="utf-8")
    with pytest.raises(RegardError, match=message):
        inspection.probe(load_run(copy_run), tmp_path / name, wanted)


def test_the_command_prints_json_and_refuses_what_cannot_go_together(copy_run, tmp_path):
    table(tmp_path / "letters.tsv", 40)
    command = ["inspect", "probe", str(copy_run), "--corpus", str(tmp_path / "letters.tsv"), "--property", "2"]
    ran = CliRunner().invoke(app, [*command, "--json"])
    assert ran.exit_code == 0, ran.output
    found = json.loads(ran.stdout)
    assert found["layers"][0] == "embedding" and set(found["probes"]) == {"linear", "mlp"}
    with pytest.raises(UsageError, match="do not go together"):
        inspection.probe(load_run(copy_run), tmp_path / "letters.tsv", "2", dev=tmp_path / "x", sources=tmp_path / "y")
