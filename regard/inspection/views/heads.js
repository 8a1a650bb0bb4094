// What the heads do: a grid of tiles coloured by importance or role, the figures of each, the relations with their baselines.
import { choice, controls, el, formatNumber, formatPercent as percent, heading, hint, inkOn, legend, onTheme, scroller, shader, table } from "./kit.js";
import { key } from "./heatmap.js";

export function show(root, data) {
  const range = (ends, shown) => (ends ? ` (95 %: ${shown(ends[0])} to ${shown(ends[1])})` : "");
  const offset = (value) => (value > 0 ? `+${value}` : value < 0 ? `−${-value}` : "0");
  const shown = {
    confidence: { top: 1, of: (figures) => figures.confidence, say: (figures) => formatNumber(figures.confidence) },
    gradient: { top: Math.max(...data.heads.map((figures) => figures.importance), 0.01), of: (figures) => figures.importance, say: (figures) => formatNumber(figures.importance) },
    absence: { top: Math.max(...data.heads.map((figures) => figures.rise), 1e-4), of: (figures) => Math.max(0, figures.rise), say: (figures) => formatNumber(figures.rise, 3) },
  };
  let by = "gradient", picked = null;
  const tiles = [], grids = el("div", { class: "grids", style: "display: flex; flex-wrap: wrap; gap: 1.6rem" });
  const UNITS = { confidence: "mean largest weight", gradient: "importance by gradient: share of a vector of length 1 over the heads of its layer", absence: `rise of the loss without the head, ${data.loss_name}` };
  const present = Object.keys(data.meanings).filter((role) => data.heads.some((figures) => figures.roles.includes(role)));
  const roleLegend = present.length ? legend(present.map((role) => data.meanings[role].meaning), present.map((role) => data.meanings[role].colour))
    : el("p", { class: "quiet" }, "No head reaches the threshold of any role.");
  const keyPlace = el("div", { class: "heads-key" });
  const details = el("div", { class: "card", "aria-live": "polite" });

  function paint() {
    const shadeOf = shader();
    for (const [button, figures] of tiles) {
      const mode = shown[by], main = figures.roles[0];
      const value = mode ? Math.max(0, Math.min(1, mode.of(figures) / mode.top)) : 0;
      const ground = mode ? shadeOf(value) : main ? data.meanings[main].colour : "";
      button.style.background = ground;
      button.style.color = ground ? inkOn(ground) : "var(--quiet)";
      button.replaceChildren(mode ? mode.say(figures) : figures.role_label || "–");
      button.setAttribute("aria-pressed", String(figures === picked));
      button.style.outline = figures === picked ? "2px solid var(--accent)" : "";
      button.style.outlineOffset = "2px";
    }
    keyPlace.replaceChildren(shown[by] ? key({ top: shown[by].top, unit: UNITS[by] }) : roleLegend);
  }
  function bars(pairs, most) {
    return el("table", {}, el("tbody", {}, pairs.map(([name, value, text]) => el("tr", {}, el("td", { class: "number" }, name),
      el("td", { style: "width: 9rem" }, el("div", { style: `width: ${(100 * value) / most}%; height: .8rem; min-width: 1px; background: var(--accent); border-radius: .2rem; margin-top: .3rem` })),
      el("td", { class: "number" }, text)))));
  }
  function pick(figures) {
    picked = figures;
    const ends = figures.intervals;
    const facts = [["confidence (mean largest weight)", formatNumber(figures.confidence) + range(ends.confidence, formatNumber)]];
    if (figures.offset !== null) facts.push(["looks most often at offset", `${offset(figures.offset)}, ${percent(figures.at_offset)} of maxima; ${percent(figures.of_possible)} of tokens that have such a neighbour${range(ends.of_possible, percent)}`],
      [figures.kind === "source" ? "on the token that is being written" : "on an equal token", percent(figures.same) + range(ends.same, percent)]);
    if (figures.rarest !== null) facts.push(["on the rarest token; on the two rarest", `${percent(figures.rarest)}; ${percent(figures.two_rarest)}${range(ends.two_rarest, percent)} (chance: ${percent(figures.chance)})`]);
    facts.push(["importance by gradient (of a vector of length 1 in its layer)", formatNumber(figures.importance) + range(ends.importance, formatNumber)], [`loss rises without it, ${data.loss_name}`, formatNumber(figures.rise, 4) + range(ends.rise, (value) => formatNumber(value, 4))]);
    if (figures.score_lost !== null) facts.push([`${data.metricName} lost without it`, formatNumber(figures.score_lost, 1) + range(ends.score_lost, (value) => formatNumber(value, 1))]);
    const total = Object.entries(figures.offsets).map(([place, times]) => [Number(place), times / figures.rows]).sort((a, b) => b[1] - a[1]);
    const most = Math.max(...total.map(([, share]) => share), 0.01);
    const roles = figures.roles.length ? figures.roles.map((role) => data.meanings[role].meaning).join("; ") : "no role found";
    details.replaceChildren(el("strong", {}, `Layer ${figures.layer}, head ${figures.head}, ${data.kinds[figures.kind]}`), el("p", {}, `${roles}.`),
      el("div", { style: "display: flex; flex-wrap: wrap; gap: 1rem 2.4rem" },
        scroller("figures of the head", el("table", { class: "heads-facts" }, el("tbody", {}, facts.map(([name, value]) => el("tr", {}, el("td", {}, name), el("td", {}, value)))))),
        total.length ? el("div", {}, el("div", { class: "quiet" }, "Offsets of its maxima"), bars(total.map(([place, share]) => [offset(place), share, percent(share)]), most)) : null,
        figures.followed.length ? el("div", { class: "heads-followed" }, el("div", { class: "quiet" }, "Relations that it follows"),
          table(["relation", "direction", "accuracy", "95 %", "baseline", "p, corrected"], figures.followed.map((relation) => [relation.relation, relation.direction, relation.accuracy, relation.interval.map(percent).join(" to "), relation.baseline, relation.p]),
            { show: (value, place) => (place === 5 ? value.toPrecision(2) : typeof value === "number" ? percent(value) : value) })) : null));
    paint();
  }

  for (const [kind, name] of Object.entries(data.kinds)) {
    const heads = data.heads.filter((figures) => figures.kind === kind);
    const most = Math.max(...heads.map((figures) => figures.head)) + 1, layers = [...new Set(heads.map((figures) => figures.layer))];
    const grid = el("div", { class: "grid", style: `grid-template-columns: max-content repeat(${most}, minmax(3.4rem, 5.2rem)); gap: .35rem; align-items: center` });
    grid.append(el("span"), ...Array.from({ length: most }, (_, head) => el("span", { class: "quiet" }, `head ${head}`)));
    for (const layer of layers) {
      grid.append(el("span", { class: "quiet" }, `layer ${layer}`));
      for (let head = 0; head < most; head++) {
        const figures = heads.find((candidate) => candidate.layer === layer && candidate.head === head);
        if (!figures) { grid.append(el("span")); continue; }
        const button = el("button", { class: "tile head", type: "button", "data-head": `${figures.attention}.${head}`,
          style: "min-height: 2.4rem; text-align: center; overflow: hidden; padding: .2rem; font-size: .85rem", onclick: () => pick(figures),
          "aria-label": `layer ${layer}, head ${head}, ${name}: ${figures.roles.join(", ") || "no role found"}`,
          onmousemove: (event) => hint(`layer ${layer}, head ${head}: ${figures.roles.join(", ") || "no role found"}\nconfidence ${formatNumber(figures.confidence)}${figures.offset === null ? "" : `, offset ${offset(figures.offset)} (${percent(figures.of_possible)})`}\nimportance ${formatNumber(figures.importance)}, loss + ${formatNumber(figures.rise, 3)}`, event),
          onmouseleave: () => hint(null) });
        tiles.push([button, figures]);
        grid.append(button);
      }
    }
    grids.append(el("div", { class: "heads-kind" }, heading(root, {}, `Heads ${name}`), el("p", { class: "quiet" }, `over ${data.over[kind]}`), scroller(`heads ${name}`, grid)));
  }
  root.append(controls(choice("colour by", [["gradient", "importance: gradient"], ["absence", "importance: left out"], ["confidence", "confidence"], ["role", "role"]], by,
    (value) => { by = value; paint(); })), grids, keyPlace, details);
  onTheme(root, paint);
  pick(data.heads.reduce((most, figures) => (figures.importance > most.importance ? figures : most)));

  root.append(el("p", { class: "quiet" }, data.by));
  if (!data.relations.length) {
    if (data.sentences && !data.parsed) root.append(el("p", { class: "quiet" }, "Plain text has no dependency relations: give a corpus in CoNLL-U to see which heads follow them."));
    return;
  }
  const inside = data.heads.filter((figures) => figures.attention in data.relations[0].accuracy);
  const rows = data.relations.map((relation) => {
    const best = inside.map((head) => [relation.chosen[head.attention][head.head], head]).sort((a, b) => b[0] - a[0])[0][1];
    const of = (figure) => relation[figure][best.attention][best.head];
    const following = inside.filter((head) => relation.follows[head.attention][head.head]).length;
    return [relation.name, relation.direction, relation.pairs, relation.offset, relation.baseline, best.name, of("accuracy"), of("intervals").map(percent).join(" to "), of("p"), following];
  });
  root.append(heading(root, {}, "Dependency relations"),
    el("p", { class: "quiet" }, `How often a head's maximum, between words, is on the related word; next to it, how often the relation's most frequent offset would have been right. ${data.splitNote}`),
    table(["relation", "direction", "pairs", "offset", "baseline", "best head", "its accuracy", "95 %", "p, corrected", "heads that follow it"], rows,
      { show: (value, place) => (place === 2 ? value.toLocaleString("en") : place === 3 ? offset(value) : place === 4 || place === 6 ? percent(value) : place === 8 ? value.toPrecision(2) : place === 9 ? String(value) : value) }));
}
