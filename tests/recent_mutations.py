"""Thirty more ways to break the code, in places that the first lists leave out; most of this code is recent."""

from tests.mutation import Mutation

RECENT = (
    # serving
    Mutation(
        "a full cache drops its newest output",
        "self._outputs.popitem(last=False)",
        "self._outputs.popitem(last=True)",
        "scheduler",
    ),
    Mutation(
        "an output that is used again stays the oldest of the cache",
        "self._outputs.move_to_end(key)",
        "self._outputs.move_to_end(key, last=False)",
        "scheduler",
    ),
    Mutation(
        "the size of a batch leaves out its padding",
        "(len(batches[-1]) + 1) * job.size > LARGEST_SIZE:",
        "sum(other.size for other in batches[-1]) + job.size > LARGEST_SIZE:",
        "scheduler",
    ),
    Mutation(
        "the expected wait ignores the number of workers",
        "self._queue.due_size * (self.pace or 0.0) / len(self.workers)",
        "self._queue.due_size * (self.pace or 0.0)",
        "scheduler_wait scheduler",
    ),
    Mutation(
        "a streamed answer begins again after its worker died",
        "job.deaths += 2 if job.show else job.is_alone",
        "job.deaths += job.is_alone",
        "scheduler serving_faults",
    ),
    # text
    Mutation(
        "of two equally long stretches an element gets the last",
        "last + 1 - begin > best[1] - best[0]",
        "last + 1 - begin >= best[1] - best[0]",
        "markup inline_text",
    ),
    Mutation(
        "punctuation of a word is aligned to letters as well",
        "for token in target_words[target_word] if target_kinds[token] == kind]",
        "for token in target_words[target_word]]",
        "markup inline_text",
    ),
    Mutation(
        "white space after a segment is lost",
        'self.trailing = whole[len(whole.rstrip()) :] if self.text else ""',
        'self.trailing = ""',
        "markup inline_text",
    ),
    Mutation(
        "tags count when subtitles are wrapped",
        'sizes = [len(_TAG.sub("", word)) + 1 for word in words]',
        "sizes = [len(word) + 1 for word in words]",
        "markup inline_text",
    ),
    Mutation(
        "a long language code does not stand for its short form",
        "spellings.append(short)",
        "spellings.append(wanted)",
        "languages markup serving",
    ),
    Mutation(
        "a phrase that begins with a sentence joins it to the one before",
        "any(first < start < last for first, last in spans)",
        "any(first <= start < last for first, last in spans)",
        "constraints split_lines",
    ),
    # inspection
    Mutation(
        "intervals over a corpus take every sentence for one token",
        "sizes = np.bincount(places)[:, None]",
        "sizes = np.ones((len(distinct), 1))",
        "inspect_corpus",
    ),
    Mutation(
        "the token that reaches half of all tokens is rare",
        "found[order[before < FREQUENT * counts.sum()]] = True",
        "found[order[before + counts[order] < FREQUENT * counts.sum()]] = True",
        "inspect_corpus",
    ),
    Mutation(
        "the end symbol is flagged as an invented word",
        "[gain < 0 and not special[word] for word, gain",
        "[gain < 0 for word, gain",
        "inspect_attribution inspect_contributions",
    ),
    Mutation(
        "the end symbol counts in the fifths of an output",
        "FIFTHS[5 * real.index(index) // len(real)]",
        "FIFTHS[5 * real.index(index) // len(found)]",
        "inspect_corpus",
    ),
    # search
    Mutation(
        "attention beyond one is rewarded as coverage",
        "self.sums.clamp(1e-9, 1.0).log()",
        "self.sums.clamp(min=1e-9).log()",
        "search beams",
    ),
    Mutation(
        "padding counts as source without coverage",
        ".log().masked_fill(~self.real, 0.0).sum(dim=1, keepdim=True)",
        ".log().sum(dim=1, keepdim=True)",
        "search beams",
    ),
    Mutation(
        "of two hypotheses with one text the worse is kept",
        "elif rank(hypothesis) < rank(owner.ended[key]):",
        "elif rank(hypothesis) > rank(owner.ended[key]):",
        "beams search",
    ),
    Mutation(
        "hypotheses that end take room in a full beam",
        "[candidate for candidate in candidates if candidate.token != EOS][:room]",
        "candidates[:room]",
        "beams search",
    ),
    # evaluation
    Mutation(
        "equal confidence counts as a better rank",
        "ranks[order[start:end]] = (start + end + 1) / 2",
        "ranks[order[start:end]] = end",
        "confidence",
    ),
    Mutation(
        "cross-validation of confidence is fitted on what it judges",
        "weights = _logistic(inputs[folds != fold], labels[folds != fold])",
        "weights = _logistic(inputs, labels)",
        "confidence",
    ),
    Mutation(
        "a translation is good from chrF 50 even if none reaches it",
        "threshold = GOOD if RARE <= share <= 1 - RARE else float(np.median(scores))",
        "threshold = GOOD",
        "confidence",
    ),
    # config
    Mutation(
        "batches in sentences are taken for tokens",
        "tokens = size * TOKENS_PER_SENTENCE",
        "tokens = size",
        "migration",
    ),
    Mutation(
        "a bidirectional encoder of fairseq becomes half as wide",
        "hidden * (2 if both else 1), shown + (",
        "hidden, shown + (",
        "migration",
    ),
    # data
    Mutation(
        "separators inside of quotes decide about the format of a table",
        'outside = "".join(head.split(\'"\')[::2])',
        "outside = head",
        "tables",
    ),
    Mutation(
        "line breaks inside of cells do not count in line numbers",
        "start = reader.line_num + 1",
        "start += 1",
        "tables",
    ),
    # training
    Mutation(
        "embeddings decay",
        "if isinstance(module, nn.Embedding | TokenEmbedding)",
        "if isinstance(module, nn.Embedding)",
        "training",
    ),
    # preparing and planning
    Mutation(
        "the sample for tokenizers begins anew in every chunk",
        "train[-decided.trained % self.step :: self.step]",
        "train[:: self.step]",
        "parallel_preparation",
    ),
    Mutation(
        "an error while reading comes before those of the workers",
        "                fault = error\n                break",
        "                raise",
        "parallel_preparation",
    ),
    Mutation(
        "prepared data fits whatever the content of a corpus of the same size",
        "(file.is_file() and facts.st_size != known.bytes) or identify(file).sha256 != known.sha256",
        "file.is_file() and facts.st_size != known.bytes",
        "prepared_data",
    ),
    Mutation(
        "FSDP2 gathers layers once",
        "gathered = batches * (sizes.parameters + inner)",
        "gathered = batches * sizes.parameters",
        "planning",
    ),
    # metrics
    Mutation(
        "METEOR's alignment prefers weight to few chunks",
        "return -len(self.links), self.chunks, -self.weight, self.distance",
        "return -len(self.links), -self.weight, self.chunks, self.distance",
        "meteor",
    ),
    Mutation(
        "bootstrap intervals lack √(n/(n−1))",
        "sqrt(count / free) * quantile / Z",
        "quantile / Z",
        "intervals",
    ),
    # nn
    Mutation(
        "the forget gate of an LSTM starts without its bias",
        "nn.init.ones_(self.input_bias.data[self.width : 2 * self.width])",
        "nn.init.zeros_(self.input_bias.data[self.width : 2 * self.width])",
        "formulas parity independent",
    ),
    # summaries
    Mutation(
        "a gap sentence stays in its document",
        "yield gap.document if whole else gap.rest, gap.sentence",
        "yield gap.document, gap.sentence",
        "gap_sentences",
    ),
    Mutation(
        "words of a target are compared with their case",
        "_WORD.findall(text.casefold())",
        "_WORD.findall(text)",
        "cleaning",
    ),
    Mutation(
        "hypotheses of a beam that were cut off count in minimum Bayes risk",
        'if hypothesis.ended == "end"] or hypotheses',
        "] or hypotheses",
        "translate",
    ),
    # sounds
    Mutation(
        "an equaliser makes silence audible",
        "torch.where(heard, changed + (1 - changed[heard].max()), frames)",
        "(changed + (1 - changed[heard].max()))",
        "sounds",
    ),
    Mutation(
        "a mask hides a tenth of a long sound",
        "min(int(length * LONGEST_FRAMES), MOST_FRAMES)",
        "int(length * LONGEST_FRAMES)",
        "sounds",
    ),
    Mutation(
        "every other band is skipped instead of pooled",
        "larger_neighbours(self.norms[depth](features))",
        "self.norms[depth](features)[:, :, ::2]",
        "speech",
    ),
    Mutation(
        "frames of a sound are normalised together",
        "shape = features.shape[2:]  # the",
        "shape = features.shape[1:]  # the",
        "speech",
    ),
    Mutation(
        "an output that CTC makes impossible is listed",
        "return [hypothesis for hypothesis in hypotheses if is_possible(hypothesis)] or hypotheses",
        "return hypotheses",
        "speech",
    ),
    Mutation(
        "each word of a spectrogram is drawn from its own smallest weight",
        "vmin=0, vmax=1, extent=extent",
        "extent=extent",
        "speech",
    ),
    Mutation(
        "the intervals of heads are of the first reference",
        "references = [(sample.reference, *sample.others) for sample in whole.samples]",
        "references = [(sample.reference,) for sample in whole.samples]",
        "inspect_heads",
    ),
    # suggested replies
    Mutation(
        "prepared attention without its scale",
        "scores = (self.queries @ keys.t()) * (self.score.scale or 1.0)",
        "scores = self.queries @ keys.t()",
        "recurrent_steps",
    ),
    Mutation(
        "a node of the trie does not know what the second expert promises below it",
        "promised = reached + bonus[children]",
        "promised = reached",
        "reply",
    ),
)
"""Chosen before it was known whether any test notices them."""
