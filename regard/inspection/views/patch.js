// Patching: the two sources, what whole parts recover, and maps of what single activations recover.
import { choice, controls, el, formatNumber, heading, scroller } from "./kit.js";
import { heatmap, key } from "./heatmap.js";

export function show(root, data) {
  const PARTS = { states: "states", attention: "what attention adds", heads: "heads", feed_forward: "feed-forward hidden units" };
  const present = Object.keys(PARTS).filter((part) => data.maps.some((map) => map.part === part));
  const body = el("div", { class: "patch-maps" });
  const readout = el("p", { class: "patch-readout", "aria-live": "polite" });
  const differ = data.clean.map((token, index) => token !== data.corrupted[index]);

  function pass(name, tokens, answer, difference) {
    return el("div", { class: "patch-pass" }, el("span", { class: "quiet" }, name),
      el("span", {}, tokens.flatMap((token, index) => [el("span", { class: differ[index] ? "patch-differs" : null }, token), " "])),
      el("span", {}, "→ ", el("b", {}, answer), el("span", { class: "quiet" }, `  logit difference ${difference < 0 ? "−" : "+"}${formatNumber(Math.abs(difference))}`)));
  }
  function describe(map, row, column) {
    const value = map.values[row][column];
    return `${map.name}, ${map.rows[row]}, ${map.columns[column]}: recovers ${formatNumber(value, 3)}`;
  }
  function show(part) {
    body.replaceChildren(...data.maps.filter((map) => map.part === part).map((map) => {
      const drawn = heatmap({ rows: map.rows, columns: map.columns, values: map.values, signed: true, top: 1, label: map.name,
        size: map.columns.length > 60 ? 13 : 24, hover: (row, column) => describe(map, row, column),
        pick: (row, column) => { readout.textContent = describe(map, row, column); drawn.mark(row, column); } });
      return el("div", {}, heading(root, {}, map.name), drawn.element);
    }));
  }
  const bars = data.wholes.map(({ name, recovery }) => el("tr", {}, el("td", {}, name),
    el("td", {}, el("div", { class: "patch-bar" }, el("i", { class: recovery < 0 ? "minus" : null, style: `width:${Math.min(100, Math.abs(recovery) * 100)}%` }))),
    el("td", { class: "number" }, formatNumber(recovery))));
  const read = data.read.slice(1).join(" ");
  root.append(
    el("p", {}, !data.read.length ? "Asked," : read ? "After " : "As its first word ", read ? el("b", {}, read) : null, ` the clean source leads to “${data.answer}”, the corrupted one to “${data.instead}”:`),
    pass("clean", data.clean, data.answer, data.cleanDifference), pass("corrupted", data.corrupted, data.instead, data.corruptedDifference),
    heading(root, { class: "patch-h" }, "Copied as a whole"), scroller("what whole parts recover", el("table", { class: "patch-wholes" }, el("tbody", {}, bars))),
    heading(root, { class: "patch-h" }, "Copied alone"),
    controls(choice("what is copied", present.map((part) => [part, PARTS[part]]), present[0], show), key({ signed: true, unit: "recovered" })), readout, body);
  show(present[0]);
}
