// Texts word by word: differences between two texts, and output tokens with their probabilities.
import { colour, el, formatPercent, hint, inkOn, mix, roving } from "./kit.js";

/** The difference of two lists: [{kind: "same" | "out" | "in", word}], by the longest common subsequence. */
export function difference(before, after) {
  const longest = Array.from({ length: before.length + 1 }, () => new Uint16Array(after.length + 1));
  for (let a = before.length - 1; a >= 0; a--) {
    for (let b = after.length - 1; b >= 0; b--) {
      longest[a][b] = before[a] === after[b] ? longest[a + 1][b + 1] + 1 : Math.max(longest[a + 1][b], longest[a][b + 1]);
    }
  }
  const found = [];
  let a = 0, b = 0;
  while (a < before.length || b < after.length) {
    if (a < before.length && b < after.length && before[a] === after[b]) { found.push({ kind: "same", word: after[b] }); a++; b++; }
    else if (b >= after.length || (a < before.length && longest[a + 1][b] >= longest[a][b + 1])) found.push({ kind: "out", word: before[a++] });
    else found.push({ kind: "in", word: after[b++] });
  }
  return found;
}
/** A text with what changed marked. */
export function differenceLine(before, after) {
  const parts = difference(before.split(/\s+/).filter(Boolean), after.split(/\s+/).filter(Boolean));
  return el("span", { class: "difference" }, parts.flatMap(({ kind, word }) => [
    kind === "same" ? word : el(kind === "in" ? "ins" : "del", {}, word), " "]));
}
/** The colour of a probability: none if it is high, stronger the lower it is. */
export function doubt(probability) {
  const share = Math.min(1, Math.max(0, 1 - probability));
  return share < 0.08 ? null : mix(colour("--cell-0"), colour("--doubt"), share ** 1.3);
}
/** Words of a side with the probability of each: [{word, tokens: [positions], probability}], and the confidence of a calibrated rating. */
export function wordsOf(target, predictions, rating = null) {
  const words = target.wordTexts.map((text, word) => ({ word, text, tokens: [], probability: 1, special: false }));
  target.words.forEach((word, position) => {
    words[word].tokens.push(position);
    words[word].special = target.special[position];
    if (predictions[position]) words[word].probability *= predictions[position].probability;
  });
  const written = words.filter((one) => !one.special);
  if (rating?.words.length === written.length) written.forEach((one, place) => { one.confidence = rating.words[place].confidence; });
  return words;
}
/**
 * The words of an output as buttons, tinted by doubt, with their probabilities below.
 * options: {given: positions that were not chosen by the model, picked, chosen(position, element)}
 */
export function outputWords(watched, { given = 0, picked = null, chosen = null } = {}) {
  const words = wordsOf(watched.target, watched.predictions, watched.rating);
  const made = words.map((one) => {
    const first = one.tokens[0], ground = watched.predictions.length ? doubt(one.probability) : null;
    const isGiven = one.tokens.every((position) => position < given);
    const text = el("span", { class: "word-text" }, one.special ? "end" : one.text);
    if (ground) { text.style.background = ground; text.style.color = inkOn(ground); }
    const number = watched.predictions.length ? el("span", { class: "chance" }, isGiven ? "given" : formatPercent(one.probability)) : null;
    const button = el("button", {
      type: "button", class: `word${isGiven ? " given" : ""}${one.tokens.includes(picked) ? " picked" : ""}`, "data-position": first,
      "aria-label": `${one.special ? "end of the output" : one.text}${number ? `, probability ${number.textContent}` : ""}`,
      onmousemove: (event) => hint(alternatives(watched, one), event), onmouseleave: () => hint(null),
      onclick: (event) => { hint(null); if (chosen) chosen(first, event.currentTarget); },
    }, text, number);
    return button;
  });
  roving(made);
  return el("div", { class: "output-words", role: "group", "aria-label": "output" }, made);
}
function alternatives(watched, word) {
  const lines = word.confidence === undefined ? [] : [`confidence ${formatPercent(word.confidence)} (calibrated)`];
  for (const position of word.tokens) {
    const prediction = watched.predictions[position];
    if (!prediction) continue;
    const own = watched.target.tokens[position];
    lines.push(`${own} ${formatPercent(prediction.probability)}, rank ${prediction.rank}`);
    for (const one of prediction.candidates.filter((candidate) => candidate.id !== watched.target.ids[position]).slice(0, 4)) {
      lines.push(`    ${one.text.trim() || "␣"} ${formatPercent(one.probability)}`);
    }
  }
  return lines.join("\n");
}
