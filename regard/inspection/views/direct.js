// Direct logit attribution: output tokens down, blocks across, signed.
import { el, formatNumber } from "./kit.js";
import { heatmap, key } from "./heatmap.js";

export function show(root, data) {
  const signed = (value) => `${value < 0 ? "−" : "+"}${formatNumber(Math.abs(value), 3)}`;
  const described = (row, column) => `${data.components[column]} adds ${signed(data.values[row][column])} to “${data.target[row]}” over “${data.others[row]}” (${signed(data.differences[row])} in all)`;
  const chosen = el("p", { "aria-live": "polite" }, "Point at a cell, or pick one.");
  const map = heatmap({ rows: data.target, columns: data.components, values: data.values, signed: true, top: data.top || 1,
    label: "what each block adds to each output token", hover: described,
    pick: (row, column) => { chosen.textContent = described(row, column); map.mark(row, column); } });
  root.append(map.element, key({ signed: true, top: data.top || 1, unit: "nats for the word" }), chosen);
}
