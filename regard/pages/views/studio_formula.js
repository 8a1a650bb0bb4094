// The equation of each view, with the numbers of this sentence, and the lecture's term for it.
import { el, formatNumber } from "./kit.js";

const sub = (text) => el("sub", {}, text), sup = (text) => el("sup", {}, text), term = (text) => el("p", { class: "quiet" }, "In the lecture: ", text);
const line = (...parts) => el("p", { class: "equation" }, parts);

const FORMULAS = {
  step({ watched, position }) {
    const prediction = watched.predictions[position];
    if (!prediction) return [line("ŷ = w · s + b"), term("regression.")];
    const token = watched.target.tokens[position], best = prediction.candidates[0];
    return [line("P(y", sub("t"), " | y", sub("<t"), ", x) = softmax(W o", sub("t"), " + b)"),
      line(`P(“${token}”) = ${formatNumber(prediction.probability, 3)},  log P = ${formatNumber(Math.log(prediction.probability), 3)};  greedy search takes “${best.text.trim()}” (${formatNumber(best.probability, 3)})`),
      line("H = −Σ P log P = ", `${formatNumber(prediction.entropy, 3)} nats`),
      term("the decoder is a conditional language model; each step is a softmax over the vocabulary.")];
  },
  beam({ watched, request, about }) {
    const best = watched.hypotheses[0], alpha = request.length_penalty ?? about.lengthPenalty;
    if (!best) return [term("beam search.")];
    const mixed = watched.ctc ? `((1 − λ) log P(y | x) + λ log P of CTC) / |y|` : "log P(y | x) / |y|";
    return [line("score(y) = ", mixed, sup("α"), watched.ctc ? `,  λ = ${formatNumber(watched.ctc)}` : "", request.coverage_penalty ? " + coverage" : ""),
      line(`${formatNumber(best.logProb, 3)} / ${best.length}`, sup(formatNumber(alpha, 2)), ` = ${formatNumber(best.logProb / best.length ** alpha, 3)}  (${best.length} tokens with the end symbol)`),
      term("beam search keeps the B best prefixes of each length; without the division short outputs would win.")];
  },
  look({ watched, looked, position }) {
    const row = looked?.[position];
    if (!row) return [line("A = softmax(Q Kᵀ / √d),  output = A V"), term("attention is a soft look-up of values by keys.")];
    const best = row.indexOf(Math.max(...row));
    return [line("α", sub("ts"), " = softmax", sub("s"), "(score(q", sub("t"), ", k", sub("s"), ")),   Σ", sub("s"), " α", sub("ts"), " = 1"),
      line(`for “${watched.target.tokens[position]}”, mean of all layers and heads: largest α = ${formatNumber(row[best], 3)} at “${watched.source.tokens[best]}”, sum ${formatNumber(row.reduce((sum, one) => sum + one, 0), 3)}`),
      term("attention weights: the alignment picture of Bahdanau et al. Weights are not contributions: ‖α v W‖ decides, and weights with the same output are not unique (effective attention).")];
  },
  change({ changes }) {
    const scaled = changes.filter((one) => one.kind === "scale-head");
    return [line("o = W", sub("O"), " [λ₁h₁; …; λ", sub("H"), "h", sub("H"), "],   λ = 1 unchanged"),
      line(scaled.length ? scaled.map((one) => `λ${one.head} = ${formatNumber(one.by)} in ${one.attention}`).join(",  ") : "λ = 1 for every head"),
      term("interventions: what changes if one part is changed shows what the part does, while weights alone do not.")];
  },
  why({ watched, position, instead }) {
    const prediction = watched.predictions[position];
    if (!prediction) return [line("∂ŷ / ∂x"), term("attribution.")];
    const other = prediction.candidates.find((one) => one.text.trim() === instead) || prediction.candidates.find((one) => one.id !== watched.target.ids[position]);
    const own = Math.log(prediction.probability);
    return [line("Δ = log P(a) − log P(b);   attribution of x", sub("s"), " = ∂Δ/∂e", sub("s"), " · e", sub("s"), " (gradient), or Δ − Δ without x", sub("s"), " (occlusion)"),
      ...(other ? [line(`Δ = log P(“${watched.target.tokens[position]}”) − log P(“${other.text.trim()}”) = ${formatNumber(own, 3)} − (${formatNumber(Math.log(other.probability), 3)}) = ${formatNumber(own - Math.log(other.probability), 3)}`)] : []),
      term("contrastive explanation: why this word and not that one.")];
  },
  nearest() {
    return [line("cos(h, h′) = h · h′ / (‖h‖ ‖h′‖)"), term("states of similar meaning are close; the nearest training examples are what taught the model this.")];
  },
  compare({ watched, other }) {
    const total = (one) => one?.hypotheses?.[0]?.logProb;
    return [line("log P(y | x) = Σ", sub("t"), " log P(y", sub("t"), " | y", sub("<t"), ", x)", watched.ctc || other?.ctc ? ";   of search with CTC: (1 − λ) log P(y | x) + λ log P of CTC" : ""),
      line(`left ${formatNumber(total(watched), 3)}${other ? `,  right ${formatNumber(total(other), 3)}` : ""}`), term("log-likelihood of an output; models with other vocabularies are not comparable by it.")];
  },
  corpus() {
    return [line("chrF = (1 + β²) P R / (β² P + R),  β = 2, over character n-grams"), term("automatic evaluation; sort by it to find the worst outputs, and look inside them.")];
  },
};

/** A panel that opens: the equation of a view with actual numbers. */
export function formula(view, facts) {
  let parts;
  try { parts = FORMULAS[view]?.(facts) || []; } catch { parts = []; }
  return parts.length ? el("details", { class: "formula card" }, el("summary", {}, "The formula, with these numbers"), parts) : el("span");
}
