// Which heads stayed, and what each number of heads was worth.
import { el, formatNumber, heading, hint, scroller, table } from "./kit.js";
import { curves } from "./charts.js";

export function show(root, data) {
  const range = (ends) => (ends ? `${formatNumber(ends[0], 3)} to ${formatNumber(ends[1], 3)}` : "–");
  if (data.scores.length) {
    root.append(table(["", "before", "after"], data.scores, { show: (value) => (typeof value === "number" ? formatNumber(value, 2) : value) }));
  }
  const falling = data.rows.filter((row, place) => place === data.rows.length - 1 || row.heads !== data.rows[place + 1].heads);
  root.append(heading(root, {}, `Heads open against ${data.metric_name}`),
    curves({ names: falling.map((row) => String(row.heads)), label: `validation ${data.metric_name} with the closed heads gone, by the number of heads open`,
      series: [{ name: data.metric_name, values: falling.map((row) => row.score) }], low: Math.min(0, ...falling.map((row) => row.score)) }));
  const names = Object.keys(data.kept);
  const most = Math.max(...data.gates.map((gate) => gate.head)) + 1;
  const grid = el("div", { class: "grid",
    style: `grid-template-columns: minmax(6rem, max-content) repeat(${most}, minmax(3.6rem, 6rem)); align-items: center; font-size: .85rem` });
  grid.append(el("span"), ...Array.from({ length: most }, (_, head) => el("span", { class: "quiet" }, `head ${head}`)));
  for (const name of names) {
    grid.append(el("span", {}, name));
    for (let head = 0; head < most; head++) {
      const gate = data.gates.find((gate) => gate.attention === name && gate.head === head);
      if (!gate) { grid.append(el("span")); continue; }
      const text = gate.kept ? "kept" : gate.closed === null ? "closed" : `step ${gate.closed.toLocaleString("en")}`;
      grid.append(el("span", { class: "tile", "data-kept": String(gate.kept),
        style: gate.kept ? "background: var(--accent); color: var(--on-accent); cursor: default" : "color: var(--quiet); cursor: default",
        onmousemove: (event) => hint(`${name}, head ${head}: ${gate.kept ? "kept" : "closed"}, log α ${formatNumber(gate.log_alpha)}`, event),
        onmouseleave: () => hint(null) }, text));
    }
  }
  root.append(heading(root, {}, "Which heads"), el("p", { class: "quiet" }, "Those kept, and the step from which each of the others stayed closed."),
    scroller("heads kept", grid));
  root.append(heading(root, {}, "During pruning"), table(["step", "λ", "heads", "loss", "95 %", "loss +", "95 %", data.metric_name], data.rows.map((row) => [row.step, row.price, row.heads, row.loss, range(row.loss_95), row.rise, range(row.rise_95), row.score]),
    { show: (value, place) => (typeof value === "string" ? value : place === 0 ? value.toLocaleString("en") : place === 2 ? String(value) : formatNumber(value, place === 7 ? 1 : 3)) }));
  if (data.settled) root.append(el("p", { class: "quiet" }, `Settled, the validation loss is ${formatNumber(data.settled[0], 3)} above that before (95 %: ${range(data.settled[1])}).`));
}
