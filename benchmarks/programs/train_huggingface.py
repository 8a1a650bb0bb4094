"""A plain training loop around Hugging Face's MarianMTModel: bucketed batches, AdamW, label smoothing, clipping."""

import json
import random
import sys
from pathlib import Path

import torch
from pace import Pace
from torch.nn import functional
from transformers import MarianConfig, MarianMTModel

PAD, BOS, EOS = 0, 1, 2

settings = json.loads(sys.argv[1])
place = Path(settings["corpus"])
random.seed(1)
torch.manual_seed(1)


def rows(name):
    with (place / name).open() as file:
        return [[int(token[1:]) for token in line.split()] for line in file]


def batches(pairs, tokens):
    """Endless batches of at most so many padded tokens on the longer side, of like length, in random order."""
    while True:
        order = sorted(random.sample(pairs, len(pairs)), key=lambda pair: (len(pair[1]), len(pair[0])))
        groups, group, longest = [], [], 0
        for pair in order:
            length = max(len(pair[0]), len(pair[1])) + 1
            if group and max(longest, length) * (len(group) + 1) > tokens:
                groups.append(group)
                group, longest = [], 0
            group.append(pair)
            longest = max(longest, length)
        groups.append(group)
        random.shuffle(groups)
        yield from groups


def padded(ids):
    longest = max(map(len, ids))
    return torch.tensor([row + [PAD] * (longest - len(row)) for row in ids])


model = MarianMTModel(
    MarianConfig(
        vocab_size=settings["vocabulary"],
        d_model=settings["width"],
        encoder_layers=settings["layers"],
        decoder_layers=settings["layers"],
        encoder_ffn_dim=settings["feed_forward"],
        decoder_ffn_dim=settings["feed_forward"],
        encoder_attention_heads=settings["heads"],
        decoder_attention_heads=settings["heads"],
        activation_function="relu",
        dropout=settings["dropout"],
        activation_dropout=settings["inner_dropout"],
        attention_dropout=0.0,
        scale_embedding=True,
        max_position_embeddings=512,
        pad_token_id=PAD,
        bos_token_id=BOS,
        eos_token_id=EOS,
        decoder_start_token_id=BOS,
    )
)
model.train()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, betas=(0.9, 0.98), weight_decay=0.0, fused=True)
pace, learnt = Pace(settings["warmup"]), 0
pairs = list(zip(rows("train.src"), rows("train.trg"), strict=True))
for group in batches(pairs, settings["tokens"]):
    pace.tick(learnt)
    source = padded([[*ids, EOS] for ids, _ in group])
    inputs = padded([[BOS, *ids] for _, ids in group])
    outputs = padded([[*ids, EOS] for _, ids in group])
    logits = model(input_ids=source, attention_mask=(source != PAD).long(), decoder_input_ids=inputs).logits
    loss = functional.cross_entropy(logits.flatten(0, 1), outputs.flatten(), ignore_index=PAD, label_smoothing=0.1)
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    learnt += int((outputs != PAD).sum())
