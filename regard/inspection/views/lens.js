// The lens: a row for each output token, a column for each decoder layer; a click opens a layer's own words.
import { choice, controls, el, formatNumber, heading, hint, onTheme, roving, shader, tint } from "./kit.js";

export function show(root, data) {
  const layers = data.layers, names = data.names;
  let by = "probability", opened = null;
  const cells = [];
  const detail = el("div", { class: "lens-detail", "aria-live": "polite" });
  const most = Math.log(Math.max(2, ...layers.flatMap((layer) => layer.ranks)));

  const share = (value) => formatNumber(value, 3);

  function strength(layer, index) {
    return by === "probability" ? layers[layer].probabilities[index] : 1 - Math.log(layers[layer].ranks[index]) / most;
  }
  function paint() {
    const shadeOf = shader();
    cells.forEach(({ layer, index, cell }) => {
      const value = strength(layer, index);
      tint(cell, shadeOf(value));
    });
  }
  function describe(layer, index) {
    const figures = layers[layer];
    return `${names[layer]}: “${data.target[index]}” has probability ${share(figures.probabilities[index])}, rank ${figures.ranks[index].toLocaleString("en")}\n`
      + figures.top[index].map(([word, value]) => `${word}  ${share(value)}`).join("\n");
  }
  function open(layer, index) {
    if (opened) opened.classList.remove("picked");
    const found = cells.find((cell) => cell.layer === layer && cell.index === index);
    opened = found.cell;
    opened.classList.add("picked");
    const token = data.target[index], settled = data.decided[index];
    detail.replaceChildren(
      heading(root, {}, `“${token}”, position ${index + 1}`),
      el("p", { class: "quiet" }, settled !== null ? `First from ${names[settled]} on.` : "Not the first word of the last layer."),
      el("div", { class: "lens-layers" }, layers.map((figures, number) => el("div", { class: number === layer ? "now" : null },
        el("b", {}, names[number]), el("span", { class: "quiet" }, ` “${token}” is #${figures.ranks[index].toLocaleString("en")}, ${share(figures.probabilities[index])}`),
        figures.top[index].map(([word, value]) => el("div", { class: "lens-word" }, el("span", { class: word === token ? "output" : null }, word),
          el("i", { style: `width:${Math.max(1, value * 100)}px` }), el("span", { class: "quiet" }, share(value))))))));
  }

  const head = el("tr", {}, el("th", { scope: "col" }, "output"), names.map((name) => el("th", { scope: "col" }, name)));
  const rows = data.target.map((token, index) => el("tr", { class: data.special[index] ? "special" : null },
    el("th", { scope: "row" }, token), layers.map((figures, layer) => {
      const first = figures.ranks[index] === 1;
      const cell = el("td", { class: first ? "first" : null,
        onclick: () => open(layer, index), onkeydown: (event) => { if (event.key === "Enter") open(layer, index); },
        onmousemove: (event) => hint(describe(layer, index), event), onmouseleave: () => hint(null) },
      el("span", { class: "own" }, figures.top[index][0][0]), first ? null : el("span", { class: "rank" }, `#${figures.ranks[index].toLocaleString("en")}`));
      cells.push({ layer, index, cell });
      return cell;
    })));
  root.append(
    controls(choice("coloured by", [["probability", "probability of the word written"], ["rank", "its rank"]], by, (value) => { by = value; paint(); })),
    el("div", { class: "lens" }, el("div", { class: "lens-table" }, el("table", {}, el("thead", {}, head), el("tbody", {}, rows))), detail));
  roving(cells.map(({ cell }) => cell), layers.length);
  onTheme(root, paint);
  paint();
  open(layers.length - 1, 0);
}
