// Identifiability over a corpus: attention by length, tokens and contributions by layer.
import { choice, controls, el, formatNumber, heading, hue, table } from "./kit.js";
import { curves } from "./charts.js";

export function show(root, data) {
  const wide = { class: "grid", style: "grid-template-columns:repeat(auto-fit,minmax(min(100%,30rem),1fr));gap:1.4rem" };
  root.append(el("p", { class: "quiet" }, `${data.sentences.toLocaleString("en")} sentences`
    + (data.left_out ? `; ${data.left_out.toLocaleString("en")} were empty or too long.` : ".")));

  const range = (ends, factor, digits) => (ends ? `${formatNumber(factor * ends[0], digits)} to ${formatNumber(factor * ends[1], digits)}` : "–");
  const percent = (all) => all.map((ends) => ends && ends.map((value) => 100 * value));
  if (data.attention.length) {
    let kind = data.attention[0].kind;
    const chart = el("div"), figures = el("div");
    const first = (bin) => Number(bin.tokens.match(/^\d+/)[0]);
    const show = () => {
      const attention = data.attention.find((candidate) => candidate.kind === kind);
      const names = attention.all.map((bin) => bin.tokens);
      const series = [{ name: "all layers", values: attention.all.map((bin) => bin.correlation), ends: attention.all.map((bin) => bin.intervals.correlation) },
        ...Object.entries(attention.layers).map(([layer, bins]) => ({ name: `layer ${layer}`, dashed: true,
          values: names.map((name) => bins.find((bin) => bin.tokens === name)?.correlation ?? null) }))];
      const lowest = Math.min(...series.flatMap((line) => line.values.filter((value) => value !== null)));
      const low = Math.max(-1, Math.floor(10 * (lowest - 0.05)) / 10);
      chart.replaceChildren(el("p", {}, el("b", {}, `Heads are ${attention.width} wide`), `: up to ${attention.width} tokens, raw weights can be the only ones with their output; beyond, never.`),
        curves({ names, low, high: 1, label: "correlation of raw and effective weights, by the number of tokens looked at", series }));
      figures.replaceChildren(table(["tokens", "sentences", "rank", "identifiable heads, %", "correlation", "95 % of rank", "95 % of heads", "95 % of correlation"],
        attention.all.map((bin) => [bin.tokens, bin.sentences, bin.rank, 100 * bin.identifiable, bin.correlation,
          range(bin.intervals.rank, 1, 1), range(bin.intervals.identifiable, 100, 0), range(bin.intervals.correlation, 1, 3)]),
        { show: (value, place) => (typeof value !== "number" ? value : place === 1 ? value.toLocaleString("en") : formatNumber(value, [0, 0, 1, 0, 3][place])) }));
    };
    show();
    root.append(heading(root, {}, "Attention by length"),
      controls(choice("attention", data.attention.map((attention) => [attention.kind, attention.name]), kind, (value) => { kind = value; show(); })),
      el("div", wide, chart, figures));
  }

  let among = "sentence";
  const chart = el("div");
  const show = () => {
    const some = data.tokens.found.filter((map) => map.among === among);
    const maps = { none: "no map", linear: "linear map", mlp: "map with a hidden layer" };
    const series = some.map((map) => ({ name: `${maps[map.map]}, ${map.nearness}`, values: map.accuracy.map((value) => (value === null ? null : 100 * value)),
      ends: percent(map.intervals), dashed: map.nearness === "euclidean", colour: hue(Object.keys(maps).indexOf(map.map)) }));
    if (among === "sentence") series.push({ name: "by chance", values: data.layers.map(() => 100 * data.tokens.chance), dashed: true, colour: "#888888" });
    chart.replaceChildren(curves({ names: data.layers, low: 0, high: 100, label: "tokens identified from their hidden state, %", series }),
      table(["layer", ...some.map((map) => `${maps[map.map]}, ${map.nearness}`)], data.layers.map((name, place) => [name, ...some.map((map) =>
        (map.accuracy[place] === null ? "–" : `${formatNumber(100 * map.accuracy[place], 1)} (${range(map.intervals[place], 100, 1)})`))])),
      el("p", { class: "quiet" }, "In brackets 95 % intervals, by a bootstrap over sentences; the maps are not learned again."));
  };
  show();
  const { contributions } = data;
  root.append(heading(root, {}, "Tokens by layer"),
    el("p", { class: "quiet" }, "A map is learned from a layer's states back to the input vectors; a token is identified if its own input vector is the nearest "
      + `to what the map says: among the tokens of its sentence, or among all words of the vocabulary put at its place. Measured on ${data.tokens.measured.toLocaleString("en")} `
      + `tokens of ${data.tokens.sentences.test.toLocaleString("en")} sentences that the maps have not seen.`),
    controls(choice("among", [["sentence", "the sentence"], ["vocabulary", "the vocabulary"]], among, (value) => { among = value; show(); })), chart,
    heading(root, {}, "What is left of each token"),
    el("p", { class: "quiet" }, "The size of a hidden state's derivative with respect to each input vector, as shares that sum to one. "
      + `${contributions.tokens.toLocaleString("en")} tokens of ${contributions.sentences.toLocaleString("en")} sentences, ${contributions.projections} random projections each; `
      + `standard error of one token's share: ${formatNumber(100 * Math.max(...contributions.standard_error), 1)} %.`),
    curves({ names: data.layers, low: 0, high: 100, label: "by layer, %", series: [
      { name: "own contribution (median)", values: contributions.median.map((value) => 100 * value), ends: percent(contributions.intervals.median) },
      { name: "own contribution (mean)", values: contributions.mean.map((value) => 100 * value), ends: percent(contributions.intervals.mean) },
      { name: "tokens that still contribute most", values: contributions.still_main.map((value) => 100 * value), ends: percent(contributions.intervals.still_main) },
    ] }),
    table(["layer", "median", "mean", "tokens that still contribute most"], data.layers.map((name, place) => [name, ...["median", "mean", "still_main"].map((what) =>
      `${formatNumber(100 * contributions[what][place], 1)} (${range(contributions.intervals[what][place], 100, 1)})`)])));
}
