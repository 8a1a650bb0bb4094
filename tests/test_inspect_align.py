"""Word alignment: links read from a model, combined, and measured against gold."""

import json
import os
import random
import shutil

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from selenium.webdriver.common.by import By

from regard import inspection
from regard.cli import main
from regard.foundation.errors import RegardError, UsageError
from regard.inspection.analyses.align import compute as alignments
from regard.inspection.analyses.align import reading_choice, word_weights
from regard.inspection.analyses.align.links import Gold, combine, grow_diag, pharaoh, read_gold, score
from regard.inspection.analyses.align.reading_choice import FILE, Asked, Association, choose, choose_for_run, maxima
from regard.inspection.analyses.align.reading_choice import diagonal as diagonal_links
from regard.inspection.analyses.align.word_weights import Pair
from regard.tasks.loaded import load_run

LINKS = st.frozensets(st.tuples(st.integers(0, 6), st.integers(0, 6)), max_size=14)


@pytest.fixture(scope="module")
def recurrent(copy_run):
    return load_run(copy_run)


@pytest.fixture(scope="module")
def transformer(transformer_run):
    return load_run(transformer_run)


@pytest.fixture(scope="module")
def rows():
    """Rows of different letters, whose copies align word by word."""
    chance = random.Random(3)
    return [" ".join(chance.sample("abcdef", chance.randint(2, 5))) for _ in range(40)]


def diagonal(path, rows):
    path.write_text("".join(" ".join(f"{n}-{n}" for n in range(len(row.split()))) + "\n" for row in rows))
    return path


# --- links ---
@given(LINKS, LINKS)
def test_grow_diag_lies_between_intersection_and_union(forward, backward):
    grown = grow_diag(forward, backward)
    assert forward & backward <= grown <= forward | backward
    assert combine(forward, backward, "none") == forward
    assert grow_diag(forward, forward) == forward
    assert grow_diag(backward, forward) == grown


@given(LINKS, LINKS)
def test_grow_diag_adds_only_neighbours_that_link_a_word_without_link(forward, backward):
    start = forward & backward
    added = grow_diag(forward, backward) - start
    assert not added or start  # nothing grows out of nothing
    for source, target in added:
        near = {(source + across, target + down) for across in (-1, 0, 1) for down in (-1, 0, 1)} - {(source, target)}
        assert near & (start | added)
        assert not (source in {s for s, _ in start} and target in {t for _, t in start})


def test_grow_diag_of_the_textbook():
    """A verb of two words: one direction links both to it, the other only the first; a far link is left out."""
    forward = frozenset({(0, 0), (1, 1), (1, 2), (3, 3)})
    backward = frozenset({(0, 0), (1, 1), (5, 0), (3, 3)})
    assert grow_diag(forward, backward) == {(0, 0), (1, 1), (1, 2), (3, 3)}


@given(LINKS, LINKS)
def test_gold_itself_has_no_errors_and_rates_are_rates(found, sure):
    gold = [Gold(sure, sure | frozenset({(9, 9)}))]
    assert score([sure], gold).error_rate == 0
    assert 0 <= score([found], gold).error_rate <= 1
    with_possible = score([sure | {(9, 9)}], gold)
    assert with_possible.error_rate == 0 or not sure


def test_the_error_rate_of_an_example_by_hand():
    """Four links, three of them possible, two of two sure ones: AER = 1 − (2 + 3)/(4 + 2)."""
    gold = Gold(frozenset({(0, 0), (1, 1)}), frozenset({(0, 0), (1, 1), (2, 2), (3, 2)}))
    scores = score([frozenset({(0, 0), (1, 1), (2, 2), (4, 4)})], [gold])
    assert scores.error_rate == pytest.approx(1 - 5 / 6)
    assert (scores.precision, scores.recall) == (3 / 4, 1)


# --- gold files ---
@given(st.lists(LINKS, min_size=1, max_size=4))
def test_links_written_are_links_read(tmp_path_factory, pairs):
    path = tmp_path_factory.mktemp("gold") / "links"
    path.write_text("".join(f"{pharaoh(links)}\n" for links in pairs))
    assert [one.sure for one in read_gold(path, [(7, 7)] * len(pairs))] == pairs


def test_possible_links_in_both_formats(tmp_path):
    one, other = tmp_path / "pharaoh", tmp_path / "numbered"
    one.write_text("0-0 1?1 1p2\n\n")
    other.write_text("1 1 1 S\n1 2 2 P\n1 2 3 P\n")
    want = [Gold(frozenset({(0, 0)}), frozenset({(0, 0), (1, 1), (1, 2)})), Gold(frozenset(), frozenset())]
    assert read_gold(one, [(2, 3), (1, 1)]) == read_gold(other, [(2, 3), (1, 1)]) == want


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("0-0\n", "1 lines for 2 sentence pairs"),
        ("0-0\n0_0\n", r'links:2: "0_0" is not a link'),
        ("0-0\n0-7\n", r'links:2: "0-7" points outside its pair of 2 source and 3 target words'),
        ("1 1 1 S\n3 1 1 S\n", "links:2 is about sentence 3"),
        ("1 0 1 S\n", "counted from 1"),
    ],
)
def test_broken_gold_names_its_line(tmp_path, text, message):
    (tmp_path / "links").write_text(text)
    with pytest.raises(RegardError, match=message):
        read_gold(tmp_path / "links", [(2, 3), (2, 3)])


# --- from maps to links ---
def test_the_row_that_reads_a_word_stands_behind_the_row_that_writes_it():
    pair = Pair(["x", "y"], ["u", "v"], [[6], [7]], [[8], [9]])
    weights = torch.tensor([[0.9, 0.1, 0.0], [0.2, 0.8, 0.0], [0.7, 0.2, 0.1]])  # writes u, v, the end
    assert maxima(word_weights.word_weights(weights, pair, "writes"), pair)[0] == {(0, 0), (1, 1)}
    assert maxima(word_weights.word_weights(weights, pair, "reads"), pair)[0] == {(1, 0), (0, 1)}


def test_words_of_several_tokens_sum_what_they_are_given_and_average_what_they_give():
    pair = Pair(["x", "y"], ["u"], [[6, 6], [7]], [[8, 8]])
    weights = torch.tensor([[0.3, 0.3, 0.4, 0.0], [0.1, 0.1, 0.6, 0.2], [0.0, 0.0, 0.0, 1.0]])
    found = word_weights.word_weights(weights, pair, "writes")
    torch.testing.assert_close(found, torch.tensor([[0.4, 0.5, 0.1]]))
    torch.testing.assert_close(found.sum(1), torch.ones(1))


def test_a_word_that_looks_at_the_end_symbol_has_no_link():
    pair = Pair(["x"], ["u"], [[6]], [[8]])
    rows_, columns_ = maxima(torch.tensor([[0.2, 0.8]]), pair)
    assert rows_ == frozenset() and columns_ == {(0, 0)}


@pytest.mark.parametrize("kind", ["recurrent", "transformer"])
def test_neither_batch_nor_order_changes_a_map(kind, request, rows, monkeypatch):
    translator = request.getfixturevalue(kind)
    pairs = [Pair.of(translator, row, row) for row in rows[:7]]
    together = dict(word_weights.token_maps(translator, pairs, "attention"))
    monkeypatch.setattr(word_weights, "TOKENS", 1)
    for place, maps in word_weights.token_maps(translator, pairs, "attention"):
        for key, weights in maps.items():
            torch.testing.assert_close(weights, together[place][key], rtol=1e-3, atol=1e-5)
            torch.testing.assert_close(weights.sum(-1), torch.ones(len(weights)))


# --- planted truth: a model that copies ---
def test_a_recurrent_copier_is_aligned_word_by_word(recurrent, rows, tmp_path):
    found = inspection.align(recurrent, rows, rows, gold=diagonal(tmp_path / "gold", rows))
    assert found.choice.reading == "writes"  # its attention is asked for the word to be written
    assert found.scores.error_rate < 0.05
    alone = inspection.align(recurrent, rows, rows, reading="writes")
    assert score(alone.links, found.gold) == found.scores


@pytest.mark.parametrize("method", ["attention", "contributions"])
def test_a_copying_transformer_is_aligned_by_one_of_its_readings(transformer, rows, tmp_path, method):
    found = inspection.align(transformer, rows, rows, gold=diagonal(tmp_path / "gold", rows), method=method)
    best = min(one.scores.error_rate for one in found.tried)
    assert found.scores.error_rate == best < 0.2
    assert max(one.scores.error_rate for one in found.tried) > best + 0.2  # not every reading finds it


def test_a_run_and_its_reverse_are_combined(recurrent, rows, tmp_path):
    gold = diagonal(tmp_path / "gold", rows)
    found = inspection.align(recurrent, rows, rows, reverse=recurrent)  # a copier is its own reverse
    assert found.combining == "grow-diag" and found.reverse is not None
    assert found.choice.reading == found.reverse.reading == "writes"  # where both directions agree
    assert inspection.align(recurrent, rows, rows, reverse=recurrent, gold=gold).scores.error_rate < 0.05


def test_more_pairs_than_the_choice_needs_are_aligned_alike(recurrent, rows, monkeypatch):
    whole = inspection.align(recurrent, rows, rows, reading="writes", combining="union")
    monkeypatch.setattr(alignments, "SAMPLE", 5)
    assert inspection.align(recurrent, rows, rows, reading="writes", combining="union").links == whole.links


def test_empty_lines_have_no_links_and_keep_their_place(recurrent):
    found = inspection.align(recurrent, ["a b", "", "c"], ["a b", "a", ""], reading="writes")
    assert str(found).split("\n")[1:] == ["", ""] and found.links[0]
    with pytest.raises(UsageError, match="nothing to align"):
        inspection.align(recurrent, [""], [""])


def test_a_head_without_a_layer_is_that_head_of_the_best_layer(transformer, rows, tmp_path):
    found = inspection.align(transformer, rows, rows, gold=diagonal(tmp_path / "gold", rows), head=1)
    assert {(one.choice.layer, one.choice.head) for one in found.tried} == {(0, 1), (1, 1)}
    assert found.scores.error_rate == min(one.scores.error_rate for one in found.tried)


def test_what_cannot_be_aligned_is_refused(recurrent, transformer, rows):
    for wrong, message in (
        ({"layer": 7}, "layers are 0, 1"),
        ({"layer": 0, "head": 5}, "heads are 0, 1"),
        ({"head": 5}, "heads are 0, 1"),
        ({"method": "magic"}, "attention, contributions"),
        ({"reading": "sideways"}, "reads, writes"),
        ({"combining": "all"}, "grow-diag"),
    ):
        with pytest.raises(UsageError, match=message):
            inspection.align(transformer, rows, rows, **wrong)
    with pytest.raises(UsageError, match="2 sources for 1 targets"):
        inspection.align(recurrent, ["a", "b"], ["a"])
    with pytest.raises(UsageError, match="Transformer"):
        inspection.align(recurrent, ["a"], ["a"], method="contributions")


# --- which map is read: chosen once, on many pairs ---
@pytest.fixture
def stored_run(copy_run, tmp_path):
    """A copy of a run that may be written to."""
    shutil.copytree(copy_run, tmp_path / "run")
    (tmp_path / "run" / FILE).unlink(missing_ok=True)
    return tmp_path / "run"


def test_a_reading_that_is_off_by_one_word_loses():
    """Two maps that agree with themselves equally well: only that words occur together tells which is right."""
    chance = random.Random(1)
    pairs, right, off = [], [], []
    for _ in range(80):
        words = chance.sample([f"w{number}" for number in range(30)], 6)
        pairs.append(Pair(words, [word.upper() + "x" for word in words], [[6]] * 6, [[7]] * 6))
        right.append(frozenset((at, at) for at in range(6)))
        off.append(frozenset((min(at + 1, 5), at) for at in range(6)))
    reads, writes = word_weights.Choice(0, None, "reads"), word_weights.Choice(0, None, "writes")
    found = choose(pairs, {reads: (off, off), writes: (right, right)}, "validation")
    assert found.choice == writes and found.association > 0.99
    assert [one.agreement for one in found.candidates] == [1.0, 1.0]
    assert Association(pairs).mean(off) < 0.5 and found.diagonal == pytest.approx(found.association)


def test_the_diagonal_goes_from_corner_to_corner():
    def pair(sources, targets):
        return Pair(["s"] * sources, ["t"] * targets, [[6]] * sources, [[7]] * targets)

    assert diagonal_links(pair(3, 3)) == {(0, 0), (1, 1), (2, 2)}
    assert diagonal_links(pair(5, 3)) == {(0, 0), (2, 1), (4, 2)}
    assert diagonal_links(pair(1, 3)) == {(0, 0), (0, 1), (0, 2)} and diagonal_links(pair(3, 1)) == {(0, 0)}
    assert diagonal_links(pair(0, 2)) == frozenset() == diagonal_links(pair(2, 0))


def test_the_choice_is_made_on_validation_pairs_once_and_stored(stored_run, recurrent, monkeypatch):
    one = inspection.align(recurrent, ["a b c"], ["a b c"], run=stored_run)
    assert one.chosen.basis == "validation" and one.chosen.pairs > 20
    assert one.choice.reading == "writes" and (stored_run / FILE).is_file()
    monkeypatch.setattr(reading_choice, "prepare", lambda *_: pytest.fail("chosen again"))
    again = inspection.align(recurrent, ["b a"], ["b a"], run=stored_run)
    assert again.choice == one.choice and again.chosen == one.chosen
    facts = again.to_json()
    assert facts["chosen"]["pairs"] == one.chosen.pairs and 0 <= facts["chosen"]["diagonal_association"] <= 1
    assert "validation pairs of the run" in again.summary and "diagonal" in again.panels()[0].note


def test_other_weights_need_another_choice(stored_run, recurrent):
    first = choose_for_run(recurrent, stored_run, Asked("attention"))
    content = json.loads((stored_run / FILE).read_text())
    content["choices"]["attention"]["weights"] = "0" * 32
    content["choices"]["attention"]["reading"] = "reads"
    (stored_run / FILE).write_text(json.dumps(content))
    assert choose_for_run(recurrent, stored_run, Asked("attention")) == first
    assert json.loads((stored_run / FILE).read_text())["choices"]["attention"]["reading"] == first.choice.reading


def test_what_is_asked_for_narrows_the_choice_and_is_not_stored(stored_run, recurrent):
    found = inspection.align(recurrent, ["a b"], ["a b"], run=stored_run, reading="reads")
    assert found.choice.reading == "reads" and not (stored_run / FILE).exists()


def test_a_run_that_cannot_be_written_to_is_read_all_the_same(stored_run, recurrent, monkeypatch):
    def refuse(*_):
        raise PermissionError("read-only")

    monkeypatch.setattr(reading_choice.durable, "write", refuse)
    found = inspection.align(recurrent, ["a b"], ["a b"], run=stored_run)
    assert found.chosen.basis == "validation" and not (stored_run / FILE).exists()


@pytest.mark.parametrize(
    "change",
    [
        lambda content: "{",
        lambda content: "[1]",
        lambda content: "{" * 100_000,
        lambda content: json.dumps({**content, "format": 9}),
        lambda content: json.dumps({**content, "choices": 7}),
        lambda content: json.dumps({**content, "choices": {"magic": {}}}),
        lambda content: _changed(content, "layer", "0"),
        lambda content: _changed(content, "layer", -1),
        lambda content: _changed(content, "layer", 99),
        lambda content: _changed(content, "reading", "sideways"),
        lambda content: _changed(content, "pairs", True),
        lambda content: _changed(content, "diagonal_association", float("nan")),
        lambda content: _changed(content, "candidates", []),
        lambda content: _changed(content, "candidates", 5),
        lambda content: _changed(content, "weights", ["x"]),
    ],
)
def test_a_stored_choice_that_is_not_valid_is_refused(stored_run, recurrent, change):
    choose_for_run(recurrent, stored_run, Asked("attention"))
    content = json.loads((stored_run / FILE).read_text())
    (stored_run / FILE).write_text(change(content))
    with pytest.raises(RegardError, match=r"alignment\.json holds no valid choice .* Delete it"):
        inspection.align(recurrent, ["a b"], ["a b"], run=stored_run)


def _changed(content, name, value):
    content["choices"]["attention"][name] = value
    return json.dumps(content)


def test_a_stored_choice_is_a_plain_file_of_the_run(stored_run, recurrent, tmp_path):
    choose_for_run(recurrent, stored_run, Asked("attention"))
    (stored_run / FILE).rename(tmp_path / "elsewhere")
    (stored_run / FILE).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(RegardError, match="leads out of the run"):
        choose_for_run(recurrent, stored_run, Asked("attention"))
    (stored_run / FILE).unlink()
    os.mkfifo(stored_run / FILE)
    with pytest.raises(RegardError, match="neither a file nor a directory"):
        choose_for_run(recurrent, stored_run, Asked("attention"))


def test_one_sentence_alone_is_called_too_little(recurrent):
    found = inspection.align(recurrent, ["a b c"], ["a b c"])
    assert found.chosen.basis == "given" and "so few pairs cannot tell" in found.summary


def test_the_error_rate_has_an_interval_and_the_diagonal_stands_beside_it(recurrent, rows, tmp_path, stored_run):
    gold = diagonal(tmp_path / "gold", rows)
    found = inspection.align(recurrent, rows, rows, gold=gold, run=stored_run)
    assert found.chosen.basis == "validation"  # never on the gold that it is measured by
    low, high = found.scores.interval
    assert 0 <= low <= found.scores.error_rate <= high <= 1
    assert found.diagonal_scores.error_rate == 0  # the gold is the diagonal
    facts = found.to_json()
    assert facts["scores"]["aer_95"] == [low, high] and facts["diagonal"]["aer"] == 0
    assert score([frozenset({(0, 0)})], [Gold(frozenset({(0, 0)}), frozenset({(0, 0)}))]).interval is None
    wide = score([frozenset({(0, 0)}), frozenset({(0, 1)})] * 8, [Gold(frozenset({(0, 0)}), frozenset({(0, 0)}))] * 16)
    low, high = wide.interval
    assert wide.error_rate == 0.5 and low < 0.35 and high > 0.65


def test_bad_links_are_left_out_where_that_is_asked_for(recurrent, rows, tmp_path, capsys, copy_run):
    path = diagonal(tmp_path / "gold", rows)
    lines = path.read_text().splitlines()
    path.write_text("\n".join([f"{lines[0]} 99-0", f"{lines[1]} x-y", *lines[2:]]) + "\n")
    with pytest.raises(RegardError, match="--skip-bad"):
        inspection.align(recurrent, rows, rows, gold=path)
    found = inspection.align(recurrent, rows, rows, gold=path, skip_bad=True)
    assert len(found.skipped) == 2 == len(found.to_json()["skipped"]) and "99-0" in found.skipped[0]
    assert [len(one.sure) for one in found.gold] == [len(row.split()) for row in rows]
    assert "2 bad links of the gold file were left out" in found.summary
    skipped = []
    (tmp_path / "numbered").write_text("1 1 1 S\nnonsense\n1 9 1 S\n7 1 1 S\n1 2 2 P\n1 1 2 S\n")
    assert read_gold(tmp_path / "numbered", [(2, 3)], skipped=skipped)[0].sure == {(0, 0), (0, 1)}
    assert len(skipped) == 3
    texts = tmp_path / "text"
    texts.write_text("\n".join(rows) + "\n")
    command = ["inspect", "align", str(copy_run), "--source", str(texts), "--target", str(texts), "--skip-bad"]
    assert main([*command, "--gold", str(path)]) == 0 and "2 bad links" in capsys.readouterr().err
    assert main(command) == 2 and "--gold" in capsys.readouterr().err


@pytest.mark.parametrize("gold", ["9-9 8-8\n" * 4, "x\n" * 4, "1 99 1 S\n2 1 99 P\n"])
def test_a_gold_file_with_no_link_left_is_refused(gold, rows, copy_run, tmp_path, capsys):
    (tmp_path / "gold").write_text(gold)
    (tmp_path / "text").write_text("\n".join(rows[:4]) + "\n")
    command = ["inspect", "align", str(copy_run), "--source", str(tmp_path / "text"), "--target"]
    command += [str(tmp_path / "text"), "--gold", str(tmp_path / "gold"), "--skip-bad"]
    assert main(command) == 2
    told = " ".join(capsys.readouterr().err.split())
    assert "has no link that fits the sentences: all" in told and "were skipped" in told


# --- the command and the page ---
def test_links_go_out_and_figures_beside_them(copy_run, rows, tmp_path, capsys):
    (tmp_path / "text").write_text("\n".join(rows) + "\n")
    gold = diagonal(tmp_path / "gold", rows)
    command = [
        "inspect",
        "align",
        str(copy_run),
        "--source",
        str(tmp_path / "text"),
        "--target",
        str(tmp_path / "text"),
    ]
    assert main([*command, "--gold", str(gold)]) == 0
    said = capsys.readouterr()
    assert len(said.out.splitlines()) == len(rows)
    assert "AER" in said.err and "validation pairs of the run" in said.err
    assert "the diagonal, without a model" in said.err and "95 %" in said.err
    assert main([*command, "--json", "--combine", "grow-diag"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert len(said["pairs"]) == len(rows) and said["scores"] is None and "one model" in said["how"]
    pytest.importorskip("matplotlib", reason="the plots extra is not installed")
    assert main([*command, "--gold", str(gold), "-o", str(tmp_path / "align.png")]) == 0
    assert (tmp_path / "align.png").read_bytes().startswith(b"\x89PNG")
    assert main([*command[:-1], str(tmp_path / "nowhere")]) == 1
    assert "does not exist" in capsys.readouterr().err


def test_a_word_that_is_picked_shows_its_own_lines_only(recurrent, rows, browser, tmp_path):
    long = " ".join("abcdef"[place % 6] for place in range(100))
    texts = [*rows[:3], long]
    gold = diagonal(tmp_path / "gold", texts)
    path = tmp_path / "align.html"
    found = inspection.align(recurrent, texts, texts, gold=gold)
    found.save(path)
    browser.get(path.as_uri())

    def shown():
        lines = browser.find_elements(By.CSS_SELECTOR, ".align-board svg line")
        return [line for line in lines if float(line.value_of_css_property("opacity")) > 0.5]

    words = browser.find_elements(By.CSS_SELECTOR, ".align-source .token")
    assert [word.text for word in words] == texts[0].split()
    assert len(shown()) == len(words)
    words[1].click()
    assert len(shown()) == 1
    browser.find_element(By.CSS_SELECTOR, "[aria-label='previous pair']").click()  # around to the last, of 100 words
    assert browser.find_element(By.CSS_SELECTOR, ".align-grid").rect["height"] < 1100  # a screen, not ten
    squares = browser.find_elements(By.CSS_SELECTOR, ".align-grid rect:not(.frame, .cross, .align-missed)")
    assert len(squares) == len(found.links[-1])
    browser.find_element(By.XPATH, "//button[text()='lines']").click()
    assert len(browser.find_elements(By.CSS_SELECTOR, ".columns .align-target .token")) == 100
    browser.find_element(By.XPATH, "//button[text()='worst first']").click()
    assert "AER" in browser.find_element(By.CSS_SELECTOR, ".controls .quiet").text
    assert browser.get_log("browser") == []
    size = {"width": 390, "height": 900, "deviceScaleFactor": 1, "mobile": True}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    assert browser.execute_script("return document.documentElement.scrollWidth") <= 390  # a telephone shows it
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_a_letter_that_the_font_lacks_is_drawn_without_a_word(recurrent, tmp_path, recwarn):
    pytest.importorskip("matplotlib", reason="the plots extra is not installed")
    inspection.align(recurrent, ["a \U0001f436"], ["a \U0001f436"]).save(tmp_path / "align.png")
    assert not [one for one in recwarn if "Glyph" in str(one.message)]
