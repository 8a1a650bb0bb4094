// Means over a corpus by group, with intervals: bars for single measures, curves for those of layers, and a table.
import { choice, controls, el, formatNumber, heading, table } from "./kit.js";
import { curves } from "./charts.js";

export function show(root, data) {
  const groupings = data.groupings;
  let chart = 0, by = groupings[0].name;
  const count = (value) => value.toLocaleString("en");
  const range = (ends) => (ends ? `${formatNumber(ends[0])} to ${formatNumber(ends[1])}` : "–");
  root.append(el("p", {}, `${count(data.sentences)} sentences of ${data.corpus}`
    + `${data.reference ? `, compared with ${data.reference}` : ""}; ${count(data.overall.tokens)} measured tokens.`));
  const picture = el("div"), figures = el("div");
  const shown = () => [data.overall, ...groupings.find((grouping) => grouping.name === by).groups];

  // a bar from zero to each mean, and a line over its interval, on one scale for all measures of a chart
  const bars = (name, place, unit, places) => {
    const groups = shown();
    const ends = groups.flatMap((group) => places.flatMap((measure) => [group.means[measure], ...(group.intervals[measure] ?? [])])).filter((value) => value !== null);
    const low = Math.min(0, ...ends), high = Math.max(0, ...ends), span = high - low || 1;
    const at = (value) => `${(100 * (value - low)) / span}%`;
    const bar = (group) => {
      const mean = group.means[place], interval = group.intervals[place];
      const track = el("span", { class: "means-track", "aria-hidden": "true" });
      if (mean !== null) {
        track.append(el("i", { class: "means-bar", style: `left:${at(Math.min(0, mean))};width:${(100 * Math.abs(mean)) / span}%` }));
        if (interval) track.append(el("i", { class: "means-ends", style: `left:${at(interval[0])};width:${(100 * (interval[1] - interval[0])) / span}%` }));
        track.append(el("i", { class: "means-zero", style: `left:${at(0)}` }));
      }
      return [el("span", { class: group === data.overall ? "means-name means-all" : "means-name" }, group.name), track,
        el("span", { class: "means-value" }, mean === null ? "–" : formatNumber(mean), interval ? el("span", { class: "means-range" }, ` (${range(interval)})`) : null)];
    };
    return el("section", { class: "means-chart" }, el("p", {}, el("b", {}, name), unit ? ` (${unit})` : ""),
      el("div", { class: "means-bars" }, groups.flatMap(bar)));
  };

  const show = () => {
    const current = data.charts[chart];
    const places = current.measures.map((_, place) => current.start + place);
    const unit = current.unit ? ` (${current.unit})` : "";
    if (current.by_layer && current.measures.length > 1) {
      const series = shown().map((group) => ({ name: group.name, values: places.map((place) => group.means[place]), ends: places.map((place) => group.intervals[place]) }));
      const known = series.flatMap((line) => line.values).filter((value) => value !== null);
      const high = Math.max(...known) * 1.05;
      picture.replaceChildren(curves({ names: current.measures, series, low: Math.min(0, ...known), high: high > 0.5 && high < 1.06 ? 1 : high, label: `${current.title}${unit}, by layer` }));
    } else {
      picture.replaceChildren(el("div", { class: "means-charts" }, current.measures.map((name, place) => bars(name, current.start + place, current.unit, places))));
    }
    const head = [by, "tokens", "sentences", ...current.measures.flatMap((name) => [name, "95 %"])];
    figures.replaceChildren(table(head, shown().map((group) => [group.name, group.tokens, group.sentences,
      ...places.flatMap((place) => [group.means[place] ?? "–", range(group.intervals[place])])]),
    { label: `${current.title} by ${by}`, show: (value, place) => (typeof value !== "number" ? value : place < 3 ? count(value) : formatNumber(value)) }));
  };
  root.append(controls(choice("measure", data.charts.map((chart, place) => [String(place), chart.title]), String(chart), (value) => { chart = Number(value); show(); }, { list: data.charts.length > 4 }),
    choice("by", groupings.map((grouping) => [grouping.name, grouping.name]), by, (value) => { by = value; show(); })), picture, heading(root, {}, "All numbers"), figures);
  if (data.left_out.length) {
    root.append(heading(root, {}, "Left out"), el("ul", {}, data.left_out.map((reason) => el("li", {}, `${count(reason.examples)}: ${reason.reason}`))));
  }
  show();
}
