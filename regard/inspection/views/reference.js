// An output and a reference, token by token, and the rank of the reference at each step of search.
import { el, formatNumber, heading, hint, roving, table } from "./kit.js";

export function show(root, data) {
  const { output, reference, search } = data, left = search.fate === "found" ? -1 : search.step;
  const lowest = Math.min(-1, ...output.log_probs, ...reference.log_probs);

  function strip(name, text) {
    const tokens = text.tokens.map((token, place) => {
      const told = `${token}\nlog P ${formatNumber(text.log_probs[place], 3)}, rank ${text.ranks[place].toLocaleString("en")}\n`
        + `likeliest: ${text.likeliest[place]}, log P ${formatNumber(text.likeliest_log_probs[place], 3)}`;
      const at = (event) => { const box = event.currentTarget.getBoundingClientRect(); hint(told, { clientX: box.left, clientY: box.bottom }); };
      return el("span", { class: `reference-token${place < data.common ? " common" : ""}${name === "reference" && place === left ? " left" : ""}`, role: "img", "aria-label": told.replaceAll("\n", "; "),
        onmousemove: (event) => hint(told, event), onmouseleave: () => hint(null), onfocus: at, onblur: () => hint(null) },
      el("span", {}, token), el("i", { style: `height:${1.6 * text.log_probs[place] / lowest}rem` }));
    });
    roving(tokens);
    return el("div", { class: "reference-strip" }, el("div", { class: "reference-name" }, el("b", {}, name), el("span", { class: "quiet" }, ` score ${formatNumber(text.score, 3)}, log P ${formatNumber(text.log_prob, 3)}, ${text.length} tokens`)),
      el("div", { class: "reference-tokens" }, tokens));
  }
  const steps = search.steps, count = Math.max(output.length, reference.length);
  const rows = Array.from({ length: count }, (_, place) => [place, output.tokens[place] ?? "–", output.log_probs[place] ?? null, reference.tokens[place] ?? "–", reference.log_probs[place] ?? null,
    steps[place]?.rank ?? null, steps[place]?.room ?? null, steps[place]?.total ?? null, steps[place]?.cut ?? null]);
  const whole = (place) => place === 0 || place === 5 || place === 6;
  root.append(
    el("p", { class: `reference-verdict ${data.verdict.replace(" ", "-")}` }, data.explanation),
    strip("output", output), strip("reference", reference),
    el("p", { class: "quiet" }, "Bars: −log P of each token. Tokens that both begin with are pale; the token before which search left the reference is framed."),
    heading(root, {}, "Step by step"),
    table(["step", "output", "log P of it", "reference", "log P", "rank in search", "kept", "its total", "total of the last kept"], rows,
      { show: (value, place) => (value === null ? "–" : typeof value !== "number" ? value : whole(place) ? value.toLocaleString("en") : formatNumber(value, 3)) }));
}
