// Probing: curves by layer with all that they have to be compared to, a table, and every label.
import { choice, controls, el, formatNumber, heading, table } from "./kit.js";
import { heatmap, key } from "./heatmap.js";
import { curves } from "./charts.js";

export function show(root, data) {
  const kinds = [["linear", "linear"], ["mlp", "one hidden layer"]];
  const percent = (values) => values.map((value) => 100 * value);
  const flat = (value) => data.layers.map(() => value);
  const kilo = (values) => values.map((value) => value / 1000);
  const spans = (all, factor) => all.map((ends) => ends && ends.map((value) => factor * value));
  const range = (ends, factor, digits) => (ends ? `${formatNumber(factor * ends[0], digits)} to ${formatNumber(factor * ends[1], digits)}` : "–");
  let kind = "mlp";
  const charts = el("div", { class: "grid", style: "grid-template-columns:repeat(auto-fit,minmax(min(100%,30rem),1fr));gap:1.4rem" });
  const figures = el("div", { style: "margin-top:1.2rem;overflow-wrap:normal" });

  function show() {
    const probe = data.probes[kind];
    charts.replaceChildren(
      curves({ names: data.layers, low: 0, high: 100, label: "accuracy on the test sentences, %", series: [
        { name: "this model", values: percent(probe.accuracy), ends: spans(probe.intervals.accuracy, 100) },
        { name: "untrained model", values: percent(probe.untrained), ends: spans(probe.intervals.untrained, 100) },
        { name: "control task (random label per word)", values: percent(probe.control), ends: spans(probe.intervals.control, 100) },
        { name: "most frequent label per word", values: percent(flat(data.baselines.word)), dashed: true },
        { name: "most frequent label", values: percent(flat(data.baselines.majority)), dashed: true },
      ] }),
      curves({ names: data.layers, low: 0, label: "online code length of the training labels, kbit: shorter is better", series: [
        { name: "this model", values: kilo(probe.bits), ends: spans(probe.intervals.bits, 0.001) },
        { name: "untrained model", values: kilo(probe.untrained_bits), ends: spans(probe.intervals.untrained_bits, 0.001) },
        { name: "control task", values: kilo(probe.control_bits), ends: spans(probe.intervals.control_bits, 0.001) },
        { name: "uniform code", values: kilo(flat(data.baselines.uniform_bits)), dashed: true },
      ] }),
    );
    const rows = data.layers.map((name, place) => [name, ...["accuracy", "control", "selectivity", "untrained"].map((what) => 100 * probe[what][place]),
      probe.bits[place] / 1000, probe.probe_bits[place] / 1000, probe.compression[place],
      ...["accuracy", "selectivity"].map((what) => range(probe.intervals[what][place], 100, 1)),
      range(probe.intervals.bits[place], 0.001, 2), range(probe.intervals.compression[place], 1, 2)]);
    figures.replaceChildren(table(
      ["layer", "accuracy", "control", "selectivity", "untrained", "kbit", "of these for the probe", "compression", "95 % of accuracy", "95 % of selectivity", "95 % of kbit", "95 % of compression"], rows,
      { show: (value, place) => (typeof value === "number" ? formatNumber(value, place > 4 ? 2 : 1) : value) }));
  }
  show();
  const { words, sentences } = data;
  const facts = `${data.labels.length} labels. Learned from ${words.train.toLocaleString("en")} words of ${sentences.train.toLocaleString("en")} sentences, `
    + `stopped by ${words.stop.toLocaleString("en")}, measured on ${words.test.toLocaleString("en")} of ${sentences.test.toLocaleString("en")} other sentences`
    + (data.repeated ? ` (${data.repeated.toLocaleString("en")} repeated sentences were left out)` : "")
    + (data.too_long ? `; ${data.too_long.toLocaleString("en")} sentences were too long.` : ".");
  root.append(controls(choice("probe", kinds, kind, (chosen) => { kind = chosen; show(); })), charts, figures, el("p", { class: "quiet" }, facts));

  const shown = data.by_label.slice(0, 40);
  const map = heatmap({
    rows: shown.map((row) => `${row.label} (${row.words.toLocaleString("en")})`), columns: data.layers, values: shown.map((row) => row.found), size: 26,
    hover: (r, c) => `${shown[r].label}, ${c ? `layer ${data.layers[c]}` : "embedding"}: ${formatNumber(100 * shown[r].found[c], 1)} % of ${shown[r].words.toLocaleString("en")} words found${shown[r].intervals[c] ? ` (95 %: ${formatNumber(100 * shown[r].intervals[c][0], 1)} to ${formatNumber(100 * shown[r].intervals[c][1], 1)})` : ""}`,
    label: "share of the words of each label that are found, by layer",
  });
  root.append(heading(root, {}, "Label by label"),
    el("p", { class: "quiet" }, "The share of the words with each label that the probe with one hidden layer finds; the number of such words in brackets."),
    map.element, key({ unit: "share found" }));
}
