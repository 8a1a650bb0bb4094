// Curves over named places.
import { el, formatNumber, hint, hue, legend, svg } from "./kit.js";

/**
 * Curves over named places. options: names (of the x places), series: [{name, values, dashed}], label (of y),
 * low, high. Points show their value on hover; the legend switches curves.
 */
export function curves(options) {
  const { names, series, label = "" } = options;
  const all = series.flatMap((one) => one.values).filter((value) => value !== null && value !== undefined);
  const low = options.low ?? Math.min(0, ...all), high = options.high ?? Math.max(...all) * 1.05;
  const wide = 720, tall = 320, left = 52, below = 34, above = 14, right = 16;
  const x = (place) => left + (names.length < 2 ? (wide - left - right) / 2 : (place * (wide - left - right)) / (names.length - 1));
  const y = (value) => above + (1 - (value - low) / (high - low || 1)) * (tall - above - below);
  const picture = svg("svg", { viewBox: `0 0 ${wide} ${tall}`, style: `width:100%;max-width:${wide}px;height:auto`, role: "img", "aria-label": label });
  for (let step = 0; step <= 4; step++) {
    const value = low + ((high - low) * step) / 4;
    picture.append(svg("line", { class: "axis", x1: left, x2: wide - right, y1: y(value), y2: y(value) }),
      svg("text", { class: "quiet", x: left - 8, y: y(value) + 4, "text-anchor": "end" }, formatNumber(value, high - low < 3 ? 2 : 0)));
  }
  const last = (place) => place > 0 && place === names.length - 1; // its name would leave the picture
  names.forEach((name, place) => picture.append(svg("text", { class: "quiet", x: last(place) ? wide - 2 : x(place), y: tall - 12, "text-anchor": last(place) ? "end" : "middle" }, name)));
  const groups = series.map((one, number) => {
    const ink = one.colour || hue(number);
    const points = one.values.map((value, place) => [value, place]).filter(([value]) => value !== null && value !== undefined);
    const ends = (place) => one.ends?.[place] ?? null;
    const band = points.filter(([, place]) => ends(place));
    const edge = (side) => band.map(([, place]) => `${x(place)},${y(Math.min(high, Math.max(low, ends(place)[side])))}`);
    const group = svg("g", {}, band.length > 1 ? svg("polygon", { class: "band", points: [...edge(0), ...edge(1).reverse()].join(" "), fill: ink, opacity: 0.13 }) : null,
      svg("polyline", { points: points.map(([value, place]) => `${x(place)},${y(value)}`).join(" "),
      fill: "none", stroke: ink, "stroke-width": 2, "stroke-dasharray": one.dashed ? "5 4" : null }),
    points.map(([value, place]) => svg("circle", { cx: x(place), cy: y(value), r: 4, fill: ink,
      onmousemove: (event) => hint(`${one.name}, ${names[place]}: ${formatNumber(value, 3)}${ends(place) ? ` (95 %: ${formatNumber(ends(place)[0], 3)} to ${formatNumber(ends(place)[1], 3)})` : ""}`, event), onmouseleave: () => hint(null) })));
    picture.append(group);
    return group;
  });
  return el("div", {}, label ? el("div", { class: "quiet" }, label) : null, picture,
    legend(series.map((one) => one.name), series.map((one, n) => one.colour || hue(n)),
      (place, on) => groups[place].setAttribute("visibility", on ? "visible" : "hidden")));
}
