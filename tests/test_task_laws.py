"""Laws of the core and of search, on models with one end left off."""

import pytest
import torch

from regard.config.cell import resolve
from regard.config.loading import from_mapping
from regard.config.model import Model as Cell
from regard.config.task import Classification as Settings
from regard.models import Model
from regard.models.classifier import build_classifier
from regard.models.encoder_model import EncoderModel
from regard.models.masked_language_model import MaskedLanguageModel
from regard.models.memory import Memory
from regard.models.pooling import make_pool
from regard.models.tagger import Tagger
from regard.nn import taps
from regard.runs.run import Run
from regard.search import Search
from regard.tasks.loaded import LoadedRun, load_run
from regard.tasks.preparation import prepare
from regard.tasks.task import Task
from regard.text.specials import BOS, EOS, MASK, PAD, SEP
from regard.training.loop import train
from regard.training.view import View
from tests.cells import DECODERS, ENCODERS, POSITIONS, VOCABULARY
from tests.task_runs import settings, task_and_model

POOLS = ("first", "last", "mean", "max", "attention")


def shaken(model: torch.nn.Module) -> torch.nn.Module:
    """In use, and no parameter zero."""
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.02 * torch.randn_like(parameter))
    return model.eval()


def language_model(decoder: str, positions: str | None = None) -> Model:
    torch.manual_seed(0)
    more = {"positions": POSITIONS[positions]} if positions else {}
    cell = resolve(
        Cell.model_validate({"width": 16, "decoder": DECODERS[decoder], **more}),
        shared_vocabulary=True,
        encoder_wanted=False,
    )
    made = shaken(Model(cell, VOCABULARY, VOCABULARY))
    assert isinstance(made, Model)
    return made


def reader(kind: str, encoder: str, pool: str | None = None, pairs: str = "joined") -> EncoderModel:
    torch.manual_seed(0)
    cell = resolve(
        Cell.model_validate({"width": 16, "encoder": ENCODERS[encoder], "attention": {"project": True}}),
        shared_vocabulary=True,
        decoder_wanted=False,
    )
    made = {
        "tags": lambda: Tagger(cell, VOCABULARY, 5),
        "masked": lambda: MaskedLanguageModel(cell, VOCABULARY),
        "classes": lambda: build_classifier(
            cell, Settings.model_validate({"pool": pool, "pairs": pairs}), VOCABULARY, 3, texts=2
        ),
    }[kind]()
    shaken(made)
    return made


def texts(rows: int = 4, longest: int = 7) -> torch.Tensor:
    """Pairs of random texts: BOS, some tokens, a separator, some more, EOS, padding."""
    generator = torch.Generator().manual_seed(1)
    source = torch.full((rows, 2 * longest + 3), PAD)
    for row in range(rows):
        one, other = (torch.randint(6, VOCABULARY, (int(n),), generator=generator) for n in (row + 1, longest - row))
        whole = [BOS, *one.tolist(), SEP, *other.tolist(), EOS]
        source[row, : len(whole)] = torch.tensor(whole)
    return source


def alone(source: torch.Tensor, row: int) -> torch.Tensor:
    return source[row : row + 1, : int((source[row] != PAD).sum())]


@pytest.mark.parametrize(
    ("decoder", "positions"),
    [*((decoder, None) for decoder in DECODERS), *(("transformer", positions) for positions in POSITIONS)],
)
def test_step_by_step_is_all_at_once_without_a_source(decoder, positions):
    model = language_model(decoder, *([positions] if positions else []))
    inputs = torch.randint(6, VOCABULARY, (3, 6), generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        memory = model.encode(inputs)
        whole, state = model.scores(model.decode(memory, inputs)), model.start(memory)
        for place in range(inputs.shape[1]):
            step, state = model.step(inputs[:, place], state)
            torch.testing.assert_close(step, whole[:, place], atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("decoder", DECODERS)
def test_the_future_does_not_leak_without_a_source(decoder):
    model = language_model(decoder)
    inputs = torch.randint(6, VOCABULARY, (2, 6), generator=torch.Generator().manual_seed(0))
    other = inputs.clone()
    other[:, 4:] = 7
    with torch.no_grad():
        one, two = (model.decode(model.encode(each), each)[:, :4] for each in (inputs, other))
    torch.testing.assert_close(one, two)


@pytest.mark.parametrize("decoder", ["rnn", "conv", "transformer"])
def test_a_beam_of_one_is_greedy_and_batch_changes_nothing(decoder, tmp_path):
    task, model, _ = task_and_model(
        "language", tmp_path, model={"decoder": {"kind": decoder}}, decoding={"max_length": 8}
    )
    writer = LoadedRun(task, model)
    prompts, search = ["w1 w2", "", "w3", "w4 w5"], Search()
    together = [one[0].tokens for one in writer.hypotheses(prompts, search, beam=1)]
    assert together == [writer.hypotheses([prompt], search, beam=1)[0][0].tokens for prompt in prompts]
    with torch.no_grad():
        for prompt, tokens in zip(prompts, together, strict=True):
            ids = [BOS, *task.input.tokenizer.encode_batch([prompt])[0]]
            for token in tokens:
                read = torch.tensor([ids])
                scores = model(read, read)[0, -1]  # V
                scores[[PAD, BOS, SEP, MASK]] = -torch.inf  # never said
                assert int(scores.argmax()) == token
                ids.append(token)


@pytest.mark.parametrize("encoder", ENCODERS)
@pytest.mark.parametrize("kind", ["tags", "masked"])
def test_batch_is_single_and_padding_nothing_where_every_token_is_answered(kind, encoder):
    model, source = reader(kind, encoder), texts()
    with torch.no_grad():
        whole = model(source)
        for row in range(len(source)):
            one = alone(source, row)
            torch.testing.assert_close(whole[row : row + 1, : one.shape[1]], model(one), atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("encoder", ENCODERS)
@pytest.mark.parametrize("pool", POOLS)
def test_batch_is_single_and_padding_nothing_in_every_pooling(pool, encoder):
    model, source = reader("classes", encoder, pool), texts()
    with torch.no_grad():
        whole = model(source)
        one_by_one = torch.cat([model(alone(source, row)) for row in range(len(source))])
    torch.testing.assert_close(whole, one_by_one, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("kind", POOLS)
@torch.no_grad()
def test_every_pooling_is_its_formula_over_real_states(kind):
    torch.manual_seed(0)
    pool, lengths = make_pool(kind, 16), (7, 4, 1)
    states = torch.randn(3, 7, 16)
    mask = torch.arange(7) < torch.tensor(lengths)[:, None]
    found = pool(Memory(states, mask, torch.zeros(3, 16)))
    for row, length in enumerate(lengths):
        real = states[row, :length]
        if kind == "attention":
            hidden = torch.tanh(real @ pool.hidden.weight.T + pool.hidden.bias)
            expected = (hidden @ pool.query.weight[0]).softmax(0) @ real
        else:
            expected = {"first": real[0], "last": real[-1], "mean": real.mean(0), "max": real.amax(0)}[kind]
        torch.testing.assert_close(found[row], expected)


@pytest.mark.parametrize("encoder", ENCODERS)
@pytest.mark.parametrize("pairs", ["joined", "apart", "attended"])
def test_watched_is_unwatched_however_two_texts_meet(pairs, encoder):
    model, source = reader("classes", encoder, pairs=pairs), texts()
    with torch.no_grad():
        plain = model(source)
        with taps.watch(model, "*") as seen:
            watched = model(source)
    torch.testing.assert_close(plain, watched, atol=1e-5, rtol=1e-4)
    assert len(seen)


@pytest.mark.parametrize("kind", ["classes", "pairs", "number", "tags", "masked"])
def test_saved_is_loaded(kind, tmp_path, monkeypatch):
    trained = []
    build = Task.build
    monkeypatch.setattr(Task, "build", lambda task: trained.append(build(task)) or trained[-1])
    outcome = train(
        from_mapping(settings(kind, tmp_path, training={"steps": 4, "validate_every": 4, "checkpoint_every": 4})),
        tmp_path / "run",
        view=View(),
    )
    text = "w1\tw2 w3" if kind in ("pairs", "number") else "w1 ___" if kind == "masked" else "w1 w2"
    assert outcome.validation and len(trained) == 1
    (model,) = trained
    task = prepare(Run.open(tmp_path / "run").config, tmp_path / "run").task
    loaded = load_run(tmp_path / "run")
    weights, stored = model.state_dict(), loaded.model.state_dict()
    assert weights.keys() == stored.keys()
    assert all(torch.equal(weights[name], stored[name]) for name in weights)
    assert loaded.predict(text).facts == task.output.answer(model.eval(), [text])[0].facts
    assert [each.line for each in loaded.predict([text, text])] == [loaded.predict(text).line] * 2
