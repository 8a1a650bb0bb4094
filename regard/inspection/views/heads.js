// What the heads do: a grid of tiles coloured by role, the figures behind each, the relations with their baselines.
view("heads", (root, data) => {
  const percent = (value) => (value === null || value === undefined ? "–" : `${Math.round(100 * value)} %`);
  const range = (ends, shown) => (ends ? ` (95 %: ${shown(ends[0])} to ${shown(ends[1])})` : "");
  const offset = (value) => (value > 0 ? `+${value}` : value < 0 ? `−${-value}` : "0");
  const shown = {
    role: null,
    confidence: { top: 1, of: (one) => one.confidence, say: (one) => say(one.confidence) },
    gradient: { top: Math.max(...data.heads.map((one) => one.importance), 0.01), of: (one) => one.importance, say: (one) => say(one.importance) },
    absence: { top: Math.max(...data.heads.map((one) => one.rise), 1e-4), of: (one) => Math.max(0, one.rise), say: (one) => say(one.rise, 3) },
  };
  let by = "role", picked = null;
  const tiles = [], grids = el("div", { class: "grids", style: "display: flex; flex-wrap: wrap; gap: 1.6rem" });
  const details = el("div", { class: "card", "aria-live": "polite" });

  function paint() {
    for (const [button, one] of tiles) {
      const mode = shown[by], main = one.roles[0];
      const value = mode ? Math.max(0, Math.min(1, mode.of(one) / mode.top)) : 0;
      button.style.background = mode ? shade(value) : main ? data.meanings[main].colour : "";
      button.style.color = mode ? (value > 0.45 ? "var(--paper)" : "") : main ? "#fff" : "var(--quiet)";
      button.replaceChildren(mode ? mode.say(one) : one.said || "–");
      button.setAttribute("aria-pressed", String(one === picked));
      button.style.outline = one === picked ? "2px solid var(--accent)" : "";
      button.style.outlineOffset = "2px";
    }
  }
  function bars(pairs, most) {
    return el("table", {}, el("tbody", {}, pairs.map(([name, value, text]) => el("tr", {}, el("td", { class: "number" }, name),
      el("td", { style: "width: 9rem" }, el("div", { style: `width: ${(100 * value) / most}%; height: .8rem; min-width: 1px; background: var(--accent); border-radius: .2rem; margin-top: .3rem` })),
      el("td", { class: "number" }, text)))));
  }
  function pick(one) {
    picked = one;
    const ends = one.intervals;
    const facts = [["confidence (mean largest weight)", say(one.confidence) + range(ends.confidence, say)]];
    if (one.offset !== null) facts.push(["looks most often at offset", `${offset(one.offset)}, ${percent(one.at_offset)} of maxima; ${percent(one.of_possible)} of tokens that have such a neighbour${range(ends.of_possible, percent)}`],
      [one.kind === "source" ? "on the token that is being written" : "on an equal token", percent(one.same) + range(ends.same, percent)]);
    if (one.rarest !== null) facts.push(["on the rarest token; on the two rarest", `${percent(one.rarest)}; ${percent(one.two_rarest)}${range(ends.two_rarest, percent)} (chance: ${percent(one.chance)})`]);
    facts.push(["importance by gradient (of a vector of length 1 in its layer)", say(one.importance) + range(ends.importance, say)], [`loss rises without it, ${data.loss_name}`, say(one.rise, 4) + range(ends.rise, (value) => say(value, 4))]);
    if (one.score_lost !== null) facts.push([`${data.metricName} lost without it`, say(one.score_lost, 1) + range(ends.score_lost, (value) => say(value, 1))]);
    const total = Object.entries(one.offsets).map(([place, times]) => [Number(place), times / one.rows]).sort((a, b) => b[1] - a[1]);
    const most = Math.max(...total.map(([, share]) => share), 0.01);
    const roles = one.roles.length ? one.roles.map((role) => data.meanings[role].meaning).join("; ") : "no role found";
    details.replaceChildren(el("strong", {}, `Layer ${one.layer}, head ${one.head}, ${data.kinds[one.kind]}`), el("p", {}, `${roles}.`),
      el("div", { style: "display: flex; flex-wrap: wrap; gap: 1rem 2.4rem" },
        el("div", { class: "scroll" }, el("table", {}, el("tbody", {}, facts.map(([name, value]) => el("tr", {}, el("td", {}, name), el("td", {}, value)))))),
        total.length ? el("div", {}, el("div", { class: "quiet" }, "Offsets of its maxima"), bars(total.map(([place, share]) => [offset(place), share, percent(share)]), most)) : null,
        one.followed.length ? el("div", { class: "scroll" }, el("div", { class: "quiet" }, "Relations that it follows"),
          table(["relation", "direction", "accuracy", "95 %", "baseline", "p, corrected"], one.followed.map((each) => [each.relation, each.direction, each.accuracy, each.interval.map(percent).join(" to "), each.baseline, each.p]),
            { show: (value, place) => (place === 5 ? value.toPrecision(2) : typeof value === "number" ? percent(value) : value) })) : null));
    paint();
  }

  for (const [kind, name] of Object.entries(data.kinds)) {
    const heads = data.heads.filter((one) => one.kind === kind);
    const most = Math.max(...heads.map((one) => one.head)) + 1, layers = [...new Set(heads.map((one) => one.layer))];
    const grid = el("div", { class: "grid", style: `grid-template-columns: max-content repeat(${most}, minmax(3.4rem, 5.2rem)); gap: .35rem; align-items: center` });
    grid.append(el("span"), ...Array.from({ length: most }, (_, head) => el("span", { class: "quiet" }, `head ${head}`)));
    for (const layer of layers) {
      grid.append(el("span", { class: "quiet" }, `layer ${layer}`));
      for (let head = 0; head < most; head++) {
        const one = heads.find((each) => each.layer === layer && each.head === head);
        if (!one) { grid.append(el("span")); continue; }
        const button = el("button", { class: "tile head", type: "button", "data-head": `${one.attention}.${head}`,
          style: "min-height: 2.4rem; text-align: center; overflow: hidden; padding: .2rem; font-size: .85rem", onclick: () => pick(one),
          "aria-label": `layer ${layer}, head ${head}, ${name}: ${one.roles.join(", ") || "no role found"}`,
          onmousemove: (event) => hint(`layer ${layer}, head ${head}: ${one.roles.join(", ") || "no role found"}\nconfidence ${say(one.confidence)}${one.offset === null ? "" : `, offset ${offset(one.offset)} (${percent(one.of_possible)})`}\nimportance ${say(one.importance)}, loss + ${say(one.rise, 3)}`, event),
          onmouseleave: () => hint(null) });
        tiles.push([button, one]);
        grid.append(button);
      }
    }
    grids.append(el("div", { class: "scroll" }, el("h2", {}, `Heads ${name}`), el("p", { class: "quiet" }, `over ${data.over[kind]}`), grid));
  }
  const present = Object.keys(data.meanings).filter((role) => data.heads.some((one) => one.roles.includes(role)));
  root.append(controls(choice("colour by", [["role", "role"], ["confidence", "confidence"], ["gradient", "importance: gradient"], ["absence", "importance: left out"]], by,
    (value) => { by = value; paint(); })), grids);
  if (present.length) root.append(legend(present.map((role) => data.meanings[role].meaning), present.map((role) => data.meanings[role].colour)));
  else root.append(el("p", { class: "quiet" }, "No head reaches the threshold of any role."));
  root.append(details);
  const first = data.heads.find((one) => one.roles.length) || data.heads[0];
  pick(first);

  root.append(el("p", { class: "quiet" }, data.by));
  if (!data.relations.length) {
    if (data.sentences && !data.parsed) root.append(el("p", { class: "quiet" }, "Plain text has no dependency relations: give a corpus in CoNLL-U to see which heads follow them."));
    return;
  }
  const inside = data.heads.filter((one) => one.attention in data.relations[0].accuracy);
  const rows = data.relations.map((one) => {
    const best = inside.map((head) => [one.chosen[head.attention][head.head], head]).sort((a, b) => b[0] - a[0])[0][1];
    const of = (figure) => one[figure][best.attention][best.head];
    const following = inside.filter((head) => one.follows[head.attention][head.head]).length;
    return [one.name, one.direction, one.pairs, one.offset, one.baseline, best.name, of("accuracy"), of("intervals").map(percent).join(" to "), of("p"), following];
  });
  root.append(el("h2", {}, "Dependency relations"),
    el("p", { class: "quiet" }, `How often a head's maximum, between words, is on the related word; beside it, how often the relation's most frequent offset would have been right. ${data.splitNote}`),
    table(["relation", "direction", "pairs", "offset", "baseline", "best head", "its accuracy", "95 %", "p, corrected", "heads that follow it"], rows,
      { show: (value, place) => (place === 2 ? value.toLocaleString("en") : place === 3 ? offset(value) : place === 4 || place === 6 ? percent(value) : place === 8 ? value.toPrecision(2) : place === 9 ? String(value) : value) }));
});
