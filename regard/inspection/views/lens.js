// The lens: a row for each token said, a column for each decoder layer; a click opens a layer's own words.
import { choice, controls, el, formatNumber, heading, hint, onTheme, roving, shader, tint } from "./kit.js";

export function show(root, data) {
  const layers = data.layers, names = data.names;
  let by = "probability", opened = null;
  const cells = [];
  const detail = el("div", { class: "lens-detail", "aria-live": "polite" });
  const most = Math.log(Math.max(2, ...layers.flatMap((layer) => layer.ranks)));

  const share = (value) => formatNumber(value, 3);

  function strength(layer, place) {
    return by === "probability" ? layers[layer].probabilities[place] : 1 - Math.log(layers[layer].ranks[place]) / most;
  }
  function paint() {
    const shadeOf = shader();
    cells.forEach(({ layer, place, cell }) => {
      const value = strength(layer, place);
      tint(cell, shadeOf(value));
    });
  }
  function told(layer, place) {
    const one = layers[layer];
    return `${names[layer]}: “${data.target[place]}” has probability ${share(one.probabilities[place])}, rank ${one.ranks[place].toLocaleString("en")}\n`
      + one.top[place].map(([word, value]) => `${word}  ${share(value)}`).join("\n");
  }
  function open(layer, place) {
    if (opened) opened.classList.remove("picked");
    const found = cells.find((one) => one.layer === layer && one.place === place);
    opened = found.cell;
    opened.classList.add("picked");
    const said = data.target[place], settled = data.decided[place];
    detail.replaceChildren(
      heading(root, {}, `“${said}”, position ${place + 1}`),
      el("p", { class: "quiet" }, settled !== null ? `First from ${names[settled]} on.` : "Not the first word of the last layer."),
      el("div", { class: "lens-layers" }, layers.map((one, number) => el("div", { class: number === layer ? "now" : null },
        el("b", {}, names[number]), el("span", { class: "quiet" }, ` “${said}” is #${one.ranks[place].toLocaleString("en")}, ${share(one.probabilities[place])}`),
        one.top[place].map(([word, value]) => el("div", { class: "lens-word" }, el("span", { class: word === said ? "said" : null }, word),
          el("i", { style: `width:${Math.max(1, value * 100)}px` }), el("span", { class: "quiet" }, share(value))))))));
  }

  const head = el("tr", {}, el("th", { scope: "col" }, "output"), names.map((name) => el("th", { scope: "col" }, name)));
  const rows = data.target.map((said, place) => el("tr", { class: data.special[place] ? "special" : null },
    el("th", { scope: "row" }, said), layers.map((one, layer) => {
      const first = one.ranks[place] === 1;
      const cell = el("td", { class: first ? "first" : null,
        onclick: () => open(layer, place), onkeydown: (event) => { if (event.key === "Enter") open(layer, place); },
        onmousemove: (event) => hint(told(layer, place), event), onmouseleave: () => hint(null) },
      el("span", { class: "own" }, one.top[place][0][0]), first ? null : el("span", { class: "rank" }, `#${one.ranks[place].toLocaleString("en")}`));
      cells.push({ layer, place, cell });
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
