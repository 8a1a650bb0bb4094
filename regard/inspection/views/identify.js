// Raw and effective attention of every head, with what makes them differ next to the map.
import { choice, controls, el, formatNumber, heading, table, unpack } from "./kit.js";
import { MANY, heatmap, key, scalingChoice, scalingNote } from "./heatmap.js";

export function show(root, data) {
  const sides = { source: ["target", "source"], between: ["source", "source"], picture: ["source", "places"], encoder: ["source", "source"],
    places: ["places", "places"], decoder: ["inputs", "inputs"] };
  const kinds = { source: "to the source", between: "between the texts", picture: "to the picture", encoder: "inside the source", places: "inside the picture",
    decoder: "inside the target" };
  const heads = data.attention.flatMap((attention, place) => attention.heads.map((head, number) => ({ ...head, attention, place, number })));
  let chosen = heads.reduce((least, head) => (head.correlation < least.correlation ? head : least), heads[0]);
  let form = "raw", perRow = Math.max(...data.attention.map((attention) => attention.length)) > MANY;
  const place = el("div"), badge = el("p", { "aria-live": "polite" }), bar = el("div");

  const values = (head, name) => {
    head.opened = head.opened || {};
    if (!head.opened[name]) head.opened[name] = head[name] ? unpack(head[name]) : unpack(head.raw);
    return head.opened[name];
  };
  function matrix() {
    const raw = values(chosen, "raw");
    if (form === "raw") return raw;
    if (form !== "difference") return values(chosen, form);
    const kept = values(chosen, "effective");
    return raw.map((row, r) => row.map((value, c) => value - kept[r][c]));
  }
  function show() {
    const { attention } = chosen, [rows, columns] = sides[attention.kind].map((side) => data[side]);
    const idle = attention.length - chosen.rank;
    badge.replaceChildren(
      el("b", {}, `${attention.length} tokens, head width ${attention.width}, rank ${chosen.rank}`),
      idle > 0
        ? `: ${idle} of ${attention.length} directions of the weights do nothing; correlation of raw and effective ${formatNumber(chosen.correlation, 3)}.`
        : ": as many as there are tokens, so these are the only weights with this output, and raw is effective.");
    place.replaceChildren(heatmap({ rows, columns, values: matrix(), signed: form !== "raw", perRow, label: `${form} attention of ${attention.name}, head ${chosen.number}`,
      hover: (r, c) => `${rows[r]} → ${columns[c]}\nraw ${formatNumber(values(chosen, "raw")[r][c], 3)}, effective ${formatNumber(values(chosen, "effective")[r][c], 3)}` }).element);
    bar.replaceChildren(key({ signed: form !== "raw", perRow, unit: "weight" }), el("p", { class: "quiet" }, scalingNote(perRow)));
  }
  const number = (of, at) => heads.findIndex((head) => head.place === of && head.number === at);
  const which = el("span");
  function pickers() {
    which.replaceChildren(choice("head", chosen.attention.heads.map((_, at) => [at, String(at)]), chosen.number,
      (at) => { chosen = heads[number(chosen.place, at)]; show(); }));
  }
  const names = data.attention.map((attention, at) => [at, `${kinds[attention.kind]}, layer ${attention.layer}`]);
  root.append(
    controls(
      choice("attention", names, chosen.place, (at) => { chosen = heads[number(at, Math.min(chosen.number, data.attention[at].heads.length - 1))]; pickers(); show(); }),
      which,
      choice("weights", [["raw", "raw"], ["effective", "effective"], ["difference", "difference"], ["sameSum", "effective, sum kept"]], form,
        (value) => { form = value; show(); }),
      scalingChoice(perRow, (value) => { perRow = value; show(); })),
    badge, place, bar);
  pickers();
  show();

  const labels = { effective: "their effective part", elsewhere: "other weights that are positive and sum to one", control: "a change as large, by chance" };
  root.append(heading(root, {}, "All heads replaced at once"));
  if (!data.demonstrations.length) {
    root.append(el("p", {}, "Every head is at least as wide as the text is long: no other weights do the same, and there is nothing to show. Take a longer text."));
    return;
  }
  root.append(
    el("p", { class: "quiet" }, "The weights of every head of the model were overwritten during one pass. The first two changes lie in the null space: the output stays, up to rounding. The third is as large as the first but lies elsewhere."),
    table(["every head's weights replaced by", "weight moved", "rows with another maximum", "greatest change of any log-probability"],
      data.demonstrations.map((shown) => [labels[shown.what], 100 * shown.moved, 100 * shown.other_strongest, shown.change]),
      { show: (value, at) => (typeof value !== "number" ? value : at === 3 ? formatNumber(value, 2) : `${formatNumber(value, 1)} %`) }));
}
