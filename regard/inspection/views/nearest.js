// The training examples with the states nearest to that of the picked token.
import { el, formatNumber, heading, roving } from "./kit.js";

export function show(root, data) {
  const own = data.side === "encoder" ? "source" : "target";
  const found = el("div", { class: "nearest-found", "aria-live": "polite" });
  const buttons = data.queries.map((query, number) => el("button", { type: "button", class: "token output", "aria-pressed": "false",
    "aria-label": `${query.token}, position ${query.position}`, onclick: () => pick(number) }, query.token));

  /** The words of a side, the token at `marked` in a mark; special tokens only if they are marked. */
  function words(side, marked) {
    const parts = [];
    let last = null;
    side.tokens.forEach((token, place) => {
      if (side.special[place] && place !== marked) return;
      const empty = (token === "␣" || token === "▸") && place !== marked && side.tokens.length > 1;
      if (parts.length && side.words[place] !== last) parts.push(" ");
      last = side.words[place];
      parts.push(place === marked ? el("mark", {}, token) : empty ? "" : token);
    });
    return parts;
  }
  function card(neighbour) {
    const example = data.examples[neighbour.example];
    const line = (name) => (example[name].tokens.length
      ? el("p", { class: `nearest-${name}` }, words(example[name], name === own ? neighbour.position : -1)) : null);
    return el("li", {}, el("div", { class: "nearest-cosine" }, el("b", {}, formatNumber(neighbour.similarity, 3)),
      el("i", { style: `width:${Math.max(0, neighbour.similarity) * 4}rem` })), el("div", {}, line("source"), line("target")));
  }
  function pick(number) {
    const query = data.queries[number];
    buttons.forEach((button, place) => { button.setAttribute("aria-pressed", String(place === number)); button.classList.toggle("picked", place === number); });
    found.replaceChildren(heading(root, {}, `“${query.token}”`), el("ol", { class: "nearest-list" }, query.neighbours.map(card)));
  }
  roving(buttons);
  root.append(el("div", { class: "tokens", role: "group", "aria-label": own === "source" ? "source tokens" : "output tokens" }, buttons), found);
  if (data.queries.length) pick(0);
}
