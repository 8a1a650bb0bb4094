// How much of each input token is in each hidden state, layer by layer.
import { choice, controls, el, formatNumber, unpack } from "./kit.js";
import { MANY, heatmap, key, scalingChoice, scalingNote } from "./heatmap.js";
import { curves } from "./charts.js";

export function show(root, data) {
  const layers = unpack(data.contributions), names = layers.map((_, place) => (place ? String(place - 1) : "embedding"));
  let layer = layers.length - 1, perRow = data.tokens.length > MANY;
  const readout = el("p", { "aria-live": "polite" }), legend = el("div");
  const map = heatmap({ rows: data.tokens, columns: data.tokens, values: layers[layer], perRow, label: "contributions of input tokens (across) to hidden states (down)",
    hover: (r, c) => `${data.tokens[c]} in the state of ${data.tokens[r]}: ${formatNumber(100 * layers[layer][r][c], 1)} %` });
  function show() {
    readout.textContent = `A token contributes ${formatNumber(100 * data.own[layer], 1)} % to its own state (median), and ${formatNumber(100 * data.main[layer], 0)} % of the tokens `
      + `are still their own greatest contributor. Standard error of the least certain cell: ${formatNumber(100 * data.error[layer], 2)} points (mean ${formatNumber(100 * data.meanError[layer], 2)}).`;
    map.update(layers[layer], { perRow });
    legend.replaceChildren(key({ perRow, unit: "share of the state" }), el("p", { class: "quiet" }, scalingNote(perRow)));
  }
  show();
  root.append(controls(choice("layer", names.map((name, place) => [place, name]), layer, (value) => { layer = value; show(); }),
    scalingChoice(perRow, (value) => { perRow = value; show(); })),
    readout, map.element, legend,
    curves({ names, low: 0, high: 100, label: "by layer, %", series: [
      { name: "own contribution (median)", values: data.own.map((value) => 100 * value) },
      { name: "tokens that still contribute most", values: data.main.map((value) => 100 * value) },
    ] }));
}
