"""Ways to break the code on purpose: one small change each, with the tests that should notice it first.

A mutation names no file. The text that it replaces occurs exactly once in `regard/` (`test_mutations.py` checks this),
so that moving code does not make the list go stale. `run_mutations.py` applies them to a copy, one at a time.
"""

from tests.bulk_mutations import BULK
from tests.mutation import ROOT, Mutation
from tests.recent_mutations import RECENT
from tests.record_mutations import RECORDS

__all__ = ["GROUPS", "ROOT", "Mutation"]

SEARCH = "search beams sampling"

ISSUE = (
    Mutation("LayerNorm ignores its epsilon", "nn.LayerNorm(width, eps=epsilon)", "nn.LayerNorm(width)", "independent"),
    Mutation("attention dropout removed", "weights = self.dropout(weights)", "weights = weights", "independent"),
    Mutation("the gated convolution's √½ is ½", "dim=-1)) * math.sqrt(0.5)", "dim=-1)) * 0.5", "formulas"),
    Mutation(
        "input feeding feeds a stale vector",
        'past["fed"] = output',
        'past["fed"] = state.past["fed"] + 0 * output',
        "formulas",
    ),
    Mutation(
        "attention before the recurrence reads layer 0",
        'state.past[f"{len(self.layers) - 1}"]',
        'state.past["0"]',
        "formulas",
    ),
    Mutation(
        "word alignment off by one row",
        "weights = weights[: len(target_words), :",
        "weights = weights[1:][: len(target_words), :",
        "independent translate",
    ),
    Mutation(
        "moving average without its warm-up", "min(self.decay, (1 + step) / (10 + step))", "self.decay", "independent"
    ),
    Mutation(
        "the same batch order in every epoch",
        "np.random.default_rng([self.seed, epoch, *more])",
        "np.random.default_rng([self.seed, 0, *more])",
        "independent batches",
    ),
    Mutation(
        "length ratio wrong at its boundary",
        "(shortest + GRACE) > cleaning",
        "(shortest + GRACE) >= cleaning",
        "independent cleaning",
    ),
    Mutation(
        "CIDEr-D without clipping",
        "min(count, reference[gram]) * reference[gram]",
        "count * reference[gram]",
        "independent evaluation",
    ),
    Mutation("rank tolerance far too small", "max(len(self.rows), self.width) * EPSILON", "1e-30", "independent"),
    Mutation(
        "code length with probes trained on the block they code",
        "train_probes(train.first(start), stop",
        "train_probes(train.first(end), stop",
        "independent inspect_probe",
    ),
)
"""The twelve that survived when the laws were first tried by mutation (34 of 46 were noticed)."""

FRESH = (
    # nn
    Mutation(
        "relative positions without 1/√K",
        "queries @ self.weight.transpose(0, 1) * width**-0.5",
        "queries @ self.weight.transpose(0, 1)",
        "positions parity",
    ),
    Mutation(
        "ALiBi slopes start at 1", "torch.arange(1, heads + 1) / heads", "torch.arange(heads) / heads", "positions"
    ),
    Mutation("NTK scaling without its exponent", "base *= ntk ** (width / (width - 2))", "base *= ntk", "positions"),
    Mutation(
        "dropout does not make up for what it drops",
        "mul_(LEVELS / (LEVELS - zeros))",
        "mul_(1.0)",
        "dropout independent",
    ),
    Mutation(
        "embeddings are scaled though told not to",
        "math.sqrt(width) if scaled else 1.0",
        "math.sqrt(width)",
        "small_tasks huggingface round_trip",
    ),
    # models
    Mutation(
        "the conv decoder's attention without √½",
        "states = (states + found) * math.sqrt(0.5)",
        "states = states + found",
        "formulas",
    ),
    Mutation(
        "an LSTM starts with an empty cell from a fixed vector",
        "[vector.repeat(1, wide // vector.shape[1]) for wide in self._state_widths]",
        "[torch.nn.functional.pad(vector, (0, wide - vector.shape[1])) for wide in self._state_widths]",
        "formulas",
    ),
    Mutation(
        "attention pooling without tanh",
        "self.query(torch.tanh(self.hidden(memory.states)))",
        "self.query(self.hidden(memory.states))",
        "task_laws tasks",
    ),
    # objectives
    Mutation(
        "scheduled sampling treats its floor as a minimum",
        "config.floor + (1 - config.floor) * left",
        "max(config.floor, left)",
        "training",
    ),
    Mutation(
        "swapped inputs give away an answer",
        "return swapped, outputs.masked_fill(first, PAD)",
        "return swapped, outputs",
        "training",
    ),
    Mutation(
        "label smoothing reaches tokens that are never produced",
        "centre = (centre * count - weight[never].sum(0)) / left",
        "centre = centre * count / left",
        "training parity huggingface",
    ),
    # search
    Mutation(
        "nucleus leaves out the token that crosses the threshold",
        "probabilities.cumsum(dim=1) - probabilities >= top_p",
        "(probabilities.cumsum(dim=1) > top_p) & (probabilities < probabilities[:, :1])",
        "sampling",
    ),
    Mutation(
        "beam search gives up before the limit",
        "scale = float(self.limit + 1) ** self.length_penalty",
        "scale = float(self.limit - 1) ** self.length_penalty",  # with `limit` nothing would change
        SEARCH,
    ),
    Mutation(
        "cut hypotheses rank with ended ones",
        'return hypothesis.ended != "end", -hypothesis.score',
        "return False, -hypothesis.score",
        SEARCH,
    ),
    Mutation(
        "minimum Bayes risk counts a repeated sample once",
        "sum(times * utility(text, reference) for reference, times in counts.items()) / total",
        "sum(utility(text, reference) for reference in counts) / len(counts)",
        "sampling translate",
    ),
    Mutation(
        "a required phrase is forced one token late",
        "if left > sum(unsaid):",
        "if left > sum(unsaid) - 1:",
        "constraints",
    ),
    # training
    Mutation(
        "plateau waits one validation too many",
        "if self.waited + 1 < config.patience:",
        "if self.waited < config.patience:",
        "training",
    ),
    Mutation("small gradients are scaled up to the clip", "if clip and norm > clip:", "if clip:", "training"),
    Mutation(
        "biases and norms decay",
        "((decaying, config.weight_decay), (steady, 0.0))",
        "((decaying, config.weight_decay), (steady, config.weight_decay))",
        "training",
    ),
    Mutation(
        "Muon without Nesterov's look ahead",
        "torch._foreach_lerp(gradients, means, MEMORY)",
        "[mean.clone() for mean in means]",
        "training",
    ),
    Mutation(
        "early stopping one validation late",
        "progress.waited >= self.training.early_stopping.patience",
        "progress.waited > self.training.early_stopping.patience",
        "runs",
    ),
    Mutation(
        "accumulated batches are weighted as if each were the whole step",
        "self._backward(parts, 1 / max(1.0, total))",
        "self._backward(parts, len(parts) / max(1.0, total))",
        "training",
    ),
    # data
    Mutation(
        "a batch that fills its budget exactly is cut",
        'tokens, side="right"))',
        'tokens, side="left"))',
        "batches",
    ),
    Mutation(
        "packed windows lose the token between them",
        "end = min(start + self.length + 1, int(ends[-1]))",
        "end = min(start + self.length, int(ends[-1]))",
        "language_models batches",
    ),
    Mutation(
        "held-out sources are told apart by case",
        '" ".join(together(pair).split()).casefold()',
        '" ".join(together(pair).split())',
        "cleaning",
    ),
    Mutation("mel bands on a linear scale", "2595 * np.log10(1 + hertz / 700)", "hertz", "sounds speech"),
    Mutation("silence is raised as well", "frames + torch.minimum(frames, raised)", "frames + raised", "speech"),
    Mutation(
        "BPE dropout forgets the pair to the left of a merge",
        "candidates[place - 1] = merges.get((symbols[place - 1], symbols[place]))",
        "candidates[place - 1] = None",
        "text",
    ),
    # text
    Mutation(
        "patience with a source that repeats itself halves",
        "PATIENCE + 2 * longest",
        "PATIENCE + longest",
        "sampling beams search",
    ),
    Mutation("offsets behind a tab are off by one", "start += len(part) + 1", "start += len(part)", "tasks text"),
    Mutation(
        "a year ends no sentence",
        "word.isdecimal() and len(word) <= 2",
        "word.isdecimal() and len(word) <= 4",
        "translate split_lines",
    ),
    # metrics
    Mutation(
        "Wilson's interval is too wide", "z * z / (4 * count * count)", "z * z / (4 * count)", "intervals contrast"
    ),
    Mutation(
        "Holm becomes Bonferroni", "(len(values) - rank) * values[index]", "len(values) * values[index]", "comparison"
    ),
    Mutation(
        "equal numbers do not share their mean rank",
        "means = ends - (counts - 1) / 2",
        "means = ends - (counts - 1)",
        "tasks small_tasks",
    ),
    Mutation(
        "Krippendorff's α without its small-sample term",
        "1 - (count - 1) * disagreeing / by_chance",
        "1 - count * disagreeing / by_chance",
        "judge",
    ),
    # evaluation
    Mutation(
        "a tie counts as right in contrastive evaluation",
        "right=sum(margin > 0 for margin in margins)",
        "right=sum(margin >= 0 for margin in margins)",
        "contrast",
    ),
    Mutation(
        "perplexity per word does not count the end",
        "words=sum(likelihood.words for likelihood in likelihoods)",
        "words=sum(likelihood.words - 1 for likelihood in likelihoods)",
        "likelihood",
    ),
    # inspection
    Mutation(
        "contributions skip the encoder's layers",
        "read = mixing @ read",
        "read = 1 * read",
        "inspect_contributions",
    ),
    Mutation(
        "head importance lets examples cancel out",
        "none if slope is None else slope.abs().double().cpu()",
        "none if slope is None else slope.double().cpu()",
        "inspect_heads",
    ),
    Mutation(
        "a probe keeps its last epoch instead of its best",
        "copy[better] = parameter.detach()[better]",
        "copy[:] = parameter.detach()",
        "inspect_probe",
    ),
    # tasks
    Mutation(
        "estimates are stretched but not shifted",
        "return slope, (true.mean() - slope * estimates.mean()).item()",
        "return slope, (true.mean() - estimates.mean()).item()",
        "small_tasks tasks",
    ),
    Mutation(
        "the fitted temperature stops early",
        "for _ in range(40):\n        left, right = high - ratio",
        "for _ in range(4):\n        left, right = high - ratio",
        "tasks small_tasks",
    ),
    # config
    Mutation(
        "attention before the recurrence scores like attention after it",
        '"before": "additive", "after": "bilinear"',
        '"before": "bilinear", "after": "bilinear"',
        "config config_layers",
    ),
    # runs
    Mutation(
        "the oldest of equally good checkpoints is removed",
        "key=lambda step: (-scores[step], step))[: self.keep_best]",
        "key=lambda step: (-scores[step], -step))[: self.keep_best]",
        "checkpoints",
    ),
    Mutation(
        "checkpoints after the pointer are candidates",
        "steps = steps[: steps.index(pointed) + 1]",
        "steps = steps[:]",
        "checkpoints resume",
    ),
)
"""Chosen afterwards, without looking at the tests, in every package with behaviour of its own."""

EARLIER = (
    Mutation(
        "distances are counted from the first position in a step",
        "self.distances.shift(q, found.query_position, found.keys.shape[2])",
        "self.distances.shift(q, 0, found.keys.shape[2])",
        "positions prepared",
    ),
    Mutation(
        "queries are turned as at the first position in a step",
        "self.distances.rotate(q, found.query_position)",
        "self.distances.rotate(q, 0)",
        "positions prepared grid",
    ),
    Mutation(
        "scaled dot product over K", "self.scale = 1 / math.sqrt(width)", "self.scale = 1 / width", "parity formulas"
    ),
    Mutation(
        "the additive score without its bias",
        "return by_head(queries, self.query) + self.bias",
        "return by_head(queries, self.query)",
        "formulas",
    ),
    Mutation(
        "beam rows meet another source",
        "ordered * most + torch.arange(len(order), device=order.device) - before[ordered]",
        "ordered * most + torch.arange(len(order), device=order.device).flip(0) - before[ordered]",
        SEARCH,
    ),
    Mutation(
        "the backward encoder reads forwards",
        'read = states if name == "forward" else backwards(states, lengths)',
        "read = states",
        "formulas",
    ),
    Mutation(
        "padding leaks into convolutions",
        "states = tap(layer(states * real))",
        "states = tap(layer(states))",
        "formulas",
    ),
    Mutation(
        "max pooling sees padding",
        "states.masked_fill(~mask[:, :, None], -torch.inf).amax(1)",
        "states.amax(1)",
        "task_laws tasks",
    ),
    Mutation(
        "pairs meet without the size of their difference",
        "torch.cat([one, other, (one - other).abs(), one * other], dim=1)",
        "torch.cat([one, other, (one - other), one * other], dim=1)",
        "task_laws tasks",
    ),
    Mutation("only the first look at a picture", "for look in self.looks:", "for look in self.looks[:1]:", "questions"),
    Mutation(
        "the gradient of the loss ignores smoothing",
        "p.new_full(wanted.shape, smoothing - 1)",
        "p.new_full(wanted.shape, -1)",
        "training parity",
    ),
    Mutation(
        "sliding windows do not overlap",
        "asked, start = end, start + stride",
        "asked, start = end, start + length",
        "language_models",
    ),
    Mutation("masked words are never replaced", "luck < HIDDEN + REPLACED", "luck < HIDDEN", "masking"),
    Mutation(
        "balanced classes are weighted the wrong way round",
        "counts.sum() / (len(counts) * counts)",
        "counts / counts.sum()",
        "tasks small_tasks",
    ),
    Mutation(
        "estimates may be reversed",
        "slope = slope if 0 < slope < math.inf else 1.0",
        "slope = slope",
        "small_tasks",
    ),
    Mutation(
        "pictures are cropped along the diagonal",
        "image[:, y : y + high, x : x + wide]",
        "image[:, y : y + high, y : y + wide]",
        "captions",
    ),
    Mutation(
        "the longest sentence allowed is dropped",
        "fits = [max(len(source), len(target)) <= longest",
        "fits = [max(len(source), len(target)) < longest",
        "preparation",
    ),
)
"""Those of the first list after the issue's that change behaviour rather than raise an error."""

GROUPS = {"issue": ISSUE, "fresh": FRESH, "earlier": EARLIER, "recent": RECENT, "records": RECORDS, "bulk": BULK}
