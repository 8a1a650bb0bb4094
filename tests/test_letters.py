"""Laws of the vectors of words from their letters."""

import pytest
import torch
import torch.nn.functional as F

import regard
from regard.config.loading import from_mapping
from regard.foundation.errors import UsageError
from regard.models.spelled_words import MOST_LETTERS
from regard.nn.letters import LetterEncoder
from regard.tasks.preparation import prepare
from regard.text.spelling import WORD_START_LETTER, Spelling
from tests.task_runs import ENCODERS, settings

TEXT = ["w1 w11 w2", "naïve w3", "w5", "日本 unseen!? w1 " + "x" * 50]
"""Words of one token and of several, of letters that no training text has, and longer than what is read."""


PIECES = {"tokenizer": {"kind": "bpe"}}
"""Bytes and pieces, so that unseen words have several tokens."""


def make_settings(directory, encoder, **model):
    made = settings("tags", directory, model={"width": 16, "encoder": {"kind": encoder}, **model})
    return {**made, "text": PIECES}


def make_task(directory, encoder, **model):
    return prepare(from_mapping(make_settings(directory, encoder, **model)), directory / "run").task


@pytest.fixture(params=ENCODERS)
def tagger(request, tmp_path):
    """A task and its model, whose letters matter: before training their weight is zero."""
    task = make_task(tmp_path, request.param, letters={})
    torch.manual_seed(1)
    model = task.build().eval()
    for parameter in model.spelled_words.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    return task, model.double()  # so that rounding is far smaller than any error


def sources(task):
    rows = [task.output._tokens(text.split())[0] for text in TEXT]
    return task.input.collate(TEXT, rows)[0], [len(row) + 2 for row in rows]


def test_padding_changes_nothing_and_batch_is_single(tagger):
    task, model = tagger
    source, lengths = sources(task)
    together = model(source)
    padded = model(F.pad(source, (0, 5)))
    for row, length in enumerate(lengths):
        single = model(source[row : row + 1, :length])
        torch.testing.assert_close(together[row, :length], single[0], atol=1e-9, rtol=1e-9)
        torch.testing.assert_close(padded[row, :length], single[0], atol=1e-9, rtol=1e-9)


def test_letters_of_words_are_their_bytes(tagger):
    task, model = tagger
    source, _ = sources(task)
    letters, words = model.spelled_words.spell(source)
    for row, text in enumerate(TEXT):
        _, places = task.output._tokens(text.split())
        for word, place in zip(text.split(), places, strict=True):
            found = [letter for letter in letters[words[row, place]].tolist() if letter]
            assert found == [WORD_START_LETTER, *(1 + byte for byte in word.encode())][:MOST_LETTERS]


def test_a_word_has_the_same_vector_wherever_it_stands(tagger):
    task, model = tagger
    source, _ = sources(task)
    vectors = model.spelled_words(source)
    first, second = task.output._tokens(TEXT[0].split())[1][0], task.output._tokens(TEXT[3].split())[1][2]
    torch.testing.assert_close(vectors[0, first], vectors[3, second])
    assert not torch.allclose(vectors[0, first], vectors[2, 1])  # w1 and w5


def test_vectors_are_those_of_the_formula():
    """Computed by torch's own convolution and maximum, one word at a time."""
    torch.manual_seed(2)
    encoder = LetterEncoder(30, width=6, filters=7, kernel=3, out=5)
    torch.nn.init.normal_(encoder.linear.weight)
    words = [[4, 9, 2, 7], [3], []]
    letters = torch.tensor([word + [0] * (6 - len(word)) for word in words])
    weight = encoder.convolution.weight.view(7, 6, 3)
    for word, found in zip(words, encoder(letters), strict=True):
        strongest = torch.zeros(7)
        if word:
            vectors = encoder.embedding[word].t()[None]  # 1×M×L
            strongest = F.conv1d(vectors, weight, encoder.convolution.bias, padding=1)[0].relu().amax(1)
        torch.testing.assert_close(found, encoder.linear(strongest))


def test_before_training_letters_change_nothing(tmp_path):
    task = make_task(tmp_path, "rnn", letters={})
    torch.manual_seed(3)
    model = task.build().eval()
    source, _ = sources(task)
    spelled = model(source)
    model.spelled_words = None
    assert torch.equal(spelled, model(source))


def test_without_the_setting_there_is_no_such_weight(tmp_path):
    assert not [name for name in make_task(tmp_path, "rnn").build().state_dict() if "spelled" in name]


def test_saved_is_loaded(tmp_path):
    trained = regard.train(make_settings(tmp_path, "rnn", letters={"filters": 8}), tmp_path / "trained")
    again = regard.load(tmp_path / "trained")
    assert trained.model.spelled_words.encoder.linear.weight.abs().sum() > 0  # it was trained
    for text in TEXT:
        assert trained(text) == again(text)


def test_special_tokens_have_no_letters(tmp_path):
    spelling = Spelling.of(make_task(tmp_path, "bag").input.tokenizer)
    assert not spelling.letters[:6].any()
    assert spelling.starts[:6].all()


@pytest.mark.parametrize(
    ("kind", "more", "message"),
    [
        ("classes", {"model": {"letters": {}}}, "spells the words of a tagger"),
        ("tags", {"model": {"letters": {"kernel": 4}}}, "Make it odd"),
        ("tags", {"model": {"letters": {}}, "text": {"tokenizer": {"kind": "words"}}}, "Use `bpe`"),
    ],
)
def test_what_cannot_work_is_refused(kind, more, message, tmp_path):
    with pytest.raises(UsageError, match=message):
        from_mapping(settings(kind, tmp_path, **more))
