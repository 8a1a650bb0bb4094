"""JoeyNMT's search with Regard's weights in JoeyNMT's own Transformer: the same mathematics, so the same outputs."""

import json
import re
import sys
from pathlib import Path
from types import SimpleNamespace

import torch
from joeynmt.batch import Batch
from joeynmt.model import build_model
from joeynmt.search import search
from joeynmt.vocabulary import Vocabulary
from safetensors.torch import load_file
from serve import by_length, serve
from tokenizers import Tokenizer

UNK, PAD, BOS, EOS = range(4)
OURS = {UNK: 3, PAD: 0, BOS: 1, EOS: 2}
"""JoeyNMT's numbers of the special tokens, and Regard's."""
NAMES = (
    (r"source_attention\.", "src_trg_att."),
    (r"encoder(.*)layers\.(\d+)\.attention\.", r"encoder\1layers.\2.src_src_att."),
    (r"decoder(.*)layers\.(\d+)\.attention\.", r"decoder\1layers.\2.trg_trg_att."),
    (r"\.(key|value|query)\.", lambda found: f".{found[1][0]}_layer."),
    (r"att\.out\.", "att.output_layer."),
    (r"feed_forward\.inner", "feed_forward.pwff_layer.0"),
    (r"feed_forward\.outer", "feed_forward.pwff_layer.3"),
    (r"feed_forward_norm", "feed_forward.layer_norm"),
    (r"encoder(.*)attention_norm", r"encoder\1layer_norm"),
    (r"decoder(.*)attention_norm", r"decoder\1x_layer_norm"),
    (r"source_norm", "dec_layer_norm"),
    (r"coder\.norm", "coder.layer_norm"),
)


def named(name):
    """A weight of Regard by JoeyNMT's name."""
    for ours, theirs in NAMES:
        name = re.sub(ours, theirs, name)
    return name


settings = json.loads(sys.argv[1])
weights = load_file(settings["weights"])
embedding, bias = weights.pop("decoder.embedding.weight"), weights.pop("output_bias")
size, width = embedding.shape
numbers = [OURS.get(number, number) for number in range(size)]
side = {
    "type": "transformer",
    "num_layers": settings["layers"],
    "num_heads": settings["heads"],
    "embeddings": {"embedding_dim": width, "scale": True},
    "hidden_size": width,
    "ff_size": settings["feed_forward"],
    "layer_norm": "pre",
    "dropout": 0.0,
}
specials = {"unk": "<unk>", "pad": "<pad>", "bos": "<s>", "eos": "</s>"}
symbols = SimpleNamespace(
    **{f"{name}_token": token for name, token in specials.items()},
    **{f"{name}_id": number for number, name in enumerate(specials)},
    sep_token=None,
    sep_id=None,
    lang_tags=[],
)
vocabulary = Vocabulary([f"t{number}" for number in range(4, size)], symbols)
model = build_model(
    {"encoder": side, "decoder": side, "tied_embeddings": True, "tied_softmax": True}, vocabulary, vocabulary
).eval()
model.decoder.output_layer.bias = torch.nn.Parameter(bias[numbers])
half = torch.exp(torch.arange(width // 2).double() * (-2 * torch.log(torch.tensor(10_000.0).double()) / width))
angles = torch.arange(5000).double()[:, None] * half
places = torch.cat([angles.sin(), angles.cos()], 1).float()[None]
state = {named(name): tensor for name, tensor in weights.items()}
shared = ("src_embed.lut.weight", "trg_embed.lut.weight", "decoder.output_layer.weight")
state |= dict.fromkeys(shared, embedding[numbers]) | dict.fromkeys(("encoder.pe.pe", "decoder.pe.pe"), places)
state["decoder.output_layer.bias"] = model.decoder.output_layer.bias.data
model.load_state_dict(state)
tokenizer = Tokenizer.from_file(settings["tokenizer"])


def translate(texts, beam, batch):
    sources = [encoded.ids for encoded in tokenizer.encode_batch(texts, add_special_tokens=False)]
    said = [""] * len(texts)
    for group in by_length(texts, list(map(len, sources)), batch):
        longest = len(sources[group[0]]) + 1
        rows = [[*(UNK if number == OURS[UNK] else number for number in sources[place]), EOS] for place in group]
        source = torch.tensor([row + [PAD] * (longest - len(row)) for row in rows])
        lengths = torch.tensor(list(map(len, rows)))
        made = Batch(source, lengths, None, None, None, torch.arange(len(rows)), torch.device("cpu"), PAD, EOS, False)
        output, _, _ = search(
            model, made, min(256, 3 * longest + 10), beam, settings["penalty"] if beam > 1 else -1, generate_unk=False
        )
        for place, row in zip(group, output.tolist(), strict=True):
            kept = row[: row.index(EOS)] if EOS in row else row
            said[place] = tokenizer.decode([number for number in kept if number > EOS])
    return said


serve(translate, Path(settings["sources"]).read_text(encoding="utf-8").splitlines())
