"""Import of a Hugging Face BERT directory as a masked language model that other runs can start from."""

from pathlib import Path

import torch

from regard.config.data import Cleaning, Data, Elsewhere
from regard.config.model import Model
from regard.config.run import RunConfig
from regard.config.task import MaskedWords
from regard.config.text import Text
from regard.config.text import Tokenizer as TokenizerSettings
from regard.formats.bert import cell_of, encoder_weights, head_weights
from regard.formats.checkpoint import Checkpoint
from regard.formats.hub_settings import HubSettings
from regard.foundation import durable
from regard.foundation.errors import RegardError
from regard.foundation.weights import put_weights, weights_of
from regard.models.masked_language_model import MaskedLanguageModel
from regard.runs.run import Run
from regard.text.wordpiece import Folding, WordPieceTokenizer, read_folding, read_vocabulary, renumber_pieces

ENDS = 2
"""Special tokens around a text."""


def import_bert(directory: Path, run_directory: Path, settings: HubSettings) -> Run:
    """Create a run from a directory with config.json, weights and a WordPiece vocabulary."""
    cell = cell_of(settings)
    vocabulary = _vocabulary(directory)
    pieces = read_vocabulary(vocabulary)
    size = settings.integer("vocab_size", least=1)
    if size != len(pieces):
        raise RegardError(
            f"{vocabulary} has {len(pieces):,} pieces, but config.json declares {size:,}. They belong to different "
            "models."
        )
    tokens, order = renumber_pieces(pieces, str(vocabulary))
    folding = read_folding(directory)
    tokenizer = WordPieceTokenizer.of_vocabulary(tokens, folding)
    checkpoint, rows = Checkpoint(directory), torch.tensor(order)
    weights = encoder_weights(cell, checkpoint, rows, len(pieces))
    head = head_weights(cell, checkpoint, rows, len(pieces))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)  # new weights are the same each time
        model = MaskedLanguageModel(cell, len(tokens))
    put_weights(model, {**weights_of(model), **weights, **(head or {})}, origin=f"The weights in {checkpoint.path}")
    config = _config(cell, directory, vocabulary, folding)
    run = Run.create(run_directory, config)
    run.tokenizers.mkdir(exist_ok=True)
    tokenizer.save(run.tokenizers / "shared.json")
    run.note(
        parameters=sum(parameter.numel() for parameter in model.parameters()),
        tokenizers={"source": {"fingerprint": tokenizer.fingerprint, "vocabulary": tokenizer.size}},
        imported=str(directory),
        head="imported" if head else "fresh",
    )
    run.save_weights(weights_of(model))
    durable.write(run.card, _card(run, config, directory, guesses=head is not None))
    run.note(status="finished", steps=0)
    return run


def _vocabulary(directory: Path) -> Path:
    for name in ("vocab.txt", "tokenizer.json"):
        if (directory / name).is_file():
            return directory / name
    raise RegardError(
        f"There is no vocabulary in {directory}: neither vocab.txt nor tokenizer.json. Download one of them."
    )


def _config(cell: Model, directory: Path, vocabulary: Path, folding: Folding) -> RunConfig:
    assert cell.positions is not None
    longest = max(1, cell.positions.max_length - ENDS)
    tokenizer = TokenizerSettings(kind="wordpiece", model=str(vocabulary), lower=folding.lower)
    return RunConfig(
        task=MaskedWords(),
        data=Data(train=Elsewhere(imported=str(directory)), cleaning=Cleaning(max_length=longest)),
        text=Text(tokenizer=tokenizer),
        model=cell,
    ).resolved()


def start_settings(place: Path | str) -> str:
    """Return the YAML section of a configuration that starts from an imported run."""
    return f"model:\n  start_from: {place}\n"


def _card(run: Run, config: RunConfig, directory: Path, *, guesses: bool) -> str:
    """Return the card of an imported run."""
    parameters = run.info["parameters"]
    usage = (
        f'It fills blanks: `echo "a man rides a ___" | regard predict {run.directory}`.'
        if guesses
        else "Its layer that predicts masked words is not imported; ours is untrained, so its predictions are random."
    )
    return f"""# {run.name}

An encoder: {config.cell}. {parameters:,} parameters, trained elsewhere as BERT and imported from {directory}. {usage}

Start your own run from it with

```yaml
{start_settings(run.directory)}```

All settings are in [config.yaml](config.yaml). The licence of the original applies.
"""
