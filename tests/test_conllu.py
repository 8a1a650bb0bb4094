"""The CoNLL-U reader against an independent one: the library `conllu`."""

import subprocess
import sys

import conllu
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.data.conllu import read_conllu
from regard.foundation.errors import RegardError

FORMS = st.text(alphabet="abcdäß語.'-", min_size=1, max_size=5)
FEATURES = st.dictionaries(st.sampled_from(["Case", "Number", "Gender[psor]"]), st.sampled_from(["Nom", "Sing,Plur"]))


@st.composite
def sentences(draw):
    """The rows of a sentence: words, some written as one, and empty nodes; with or without its text."""
    forms = draw(st.lists(FORMS, min_size=1, max_size=7))
    rows, written, until = [], [], 0
    for number, form in enumerate(forms, start=1):
        spaced = draw(st.booleans())
        if number > until and number < len(forms) and draw(st.integers(0, 4)) == 0:
            until = number + 1
            whole = draw(st.sampled_from([form + forms[number], "xyz"]))
            written.append((whole, spaced))
            rows.append([f"{number}-{until}", whole, *["_"] * 7, "_" if spaced else "SpaceAfter=No"])
        elif number > until:
            written.append((form, spaced))
        features = draw(FEATURES)
        shown = "|".join(f"{name}={value}" for name, value in sorted(features.items())) or "_"
        head = draw(st.integers(0, len(forms)))
        relation = draw(st.sampled_from(["nsubj", "obl:tmod", "root"]))
        misc = "_" if spaced or number <= until else "SpaceAfter=No"
        tag, fine = draw(st.sampled_from(["NOUN", "X"])), draw(st.sampled_from(["NN", "VB"]))
        rows.append([str(number), form, form.lower(), tag, fine, shown, str(head), relation, "_", misc])
        if draw(st.integers(0, 5)) == 0 and number >= until:
            rows.append([f"{number}.1", "e", *["_"] * 8])
    text = "".join(form + " " * spaced for form, spaced in written).rstrip()
    comments = [f"# text = {text}"] if draw(st.booleans()) else draw(st.sampled_from([[], ["# sent_id = 7"]]))
    return "\n".join([*comments, *("\t".join(row) for row in rows)]) + "\n\n"


@settings(max_examples=150, deadline=None)
@given(st.lists(sentences(), min_size=1, max_size=4))
def test_the_reader_agrees_with_the_library(tmp_path_factory, parts):
    path = tmp_path_factory.getbasetemp() / "random.conllu"
    path.write_text("".join(parts), encoding="utf-8")
    found, expected = list(read_conllu(path)), conllu.parse("".join(parts))
    assert len(found) == len(expected)
    for mine, theirs in zip(found, expected, strict=True):
        rows = [row for row in theirs if isinstance(row["id"], int)]
        assert [word.form for word in mine.words] == [row["form"] for row in rows]
        assert [word.lemma for word in mine.words] == [row["lemma"] for row in rows]
        assert [word.upos for word in mine.words] == [row["upos"] for row in rows]
        assert [word.xpos for word in mine.words] == [row["xpos"] for row in rows]
        assert [word.features for word in mine.words] == [row["feats"] or {} for row in rows]
        assert [word.head + 1 for word in mine.words] == [row["head"] for row in rows]
        assert [word.relation for word in mine.words] == [row["deprel"].partition(":")[0] for row in rows]
        if "text" in theirs.metadata:
            assert mine.text == theirs.metadata["text"]


WORD = "\t_\tX\t_\t_\t{}\troot\t_\t_\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1\tI\ti\n", "a.conllu:1 has 3 tab-separated columns"),
        (f"1\ta{WORD.format(0)[:-1]}\t_\t_\n", "has 12 tab-separated columns"),
        (f"1\ta{WORD.format(0)}3\tb{WORD.format(1)}", "a.conllu:2: .* out of order"),
        (f"1\ta{WORD.format(0)}1\tb{WORD.format(0)}", "out of order"),
        (f"1\ta{WORD.format(9)}", 'depends on word "9", but the sentence has 1'),
        (f"1-9\tab\t_\t_\t_\t_\t_\t_\t_\t_\n1\ta{WORD.format(0)}", "out of order"),
    ],
)
def test_what_the_library_accepts_without_a_word_is_refused_with_its_line(tmp_path, text, message):
    assert conllu.parse(text + "\n")
    (tmp_path / "a.conllu").write_text(text)
    with pytest.raises(RegardError, match=message):
        list(read_conllu(tmp_path / "a.conllu"))


def test_the_library_is_for_tests_only():
    code = "import sys, regard, regard.data.conllu, regard.inspection.examples; print('conllu' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
