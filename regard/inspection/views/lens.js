// The lens: a row for each token said, a column for each decoder layer; a click opens a layer's own words.
view("lens", (root, data) => {
  const layers = data.layers, names = layers.map((_, layer) => `layer ${layer}`);
  let by = "probability", opened = null;
  const cells = [];
  const detail = el("div", { class: "lens-detail", "aria-live": "polite" });
  const most = Math.log(Math.max(2, ...layers.flatMap((layer) => layer.ranks)));

  const share = (value) => (value > 0 && value < 0.001 ? "<0.001" : say(value, 3));

  function strength(layer, place) {
    return by === "probability" ? layers[layer].probabilities[place] : 1 - Math.log(layers[layer].ranks[place]) / most;
  }
  function paint() {
    const shadeOf = shader();
    cells.forEach(({ layer, place, cell }) => {
      const value = strength(layer, place);
      cell.style.background = shadeOf(value);
      cell.style.color = value > 0.4 ? "var(--paper)" : "";
    });
  }
  function told(layer, place) {
    const one = layers[layer];
    return `${names[layer]}: “${data.target[place]}” has probability ${share(one.probabilities[place])}, rank ${one.ranks[place].toLocaleString("en")}\n`
      + one.top[place].map(([word, value]) => `${word}  ${share(value)}`).join("\n");
  }
  function open(layer, place) {
    if (opened) opened.classList.remove("picked");
    const found = cells.find((one) => one.layer === layer && one.place === place);
    opened = found.cell;
    opened.classList.add("picked");
    const said = data.target[place], settled = data.decided[place];
    detail.replaceChildren(
      el("h3", {}, `“${said}”, position ${place + 1}`),
      el("p", { class: "quiet" }, settled !== null ? `First from layer ${settled} on.` : "Not the first word of the last layer."),
      el("div", { class: "lens-layers" }, layers.map((one, number) => el("div", { class: number === layer ? "now" : null },
        el("b", {}, names[number]), el("span", { class: "quiet" }, ` “${said}” is #${one.ranks[place].toLocaleString("en")}, ${share(one.probabilities[place])}`),
        one.top[place].map(([word, value]) => el("div", { class: "lens-word" }, el("span", { class: word === said ? "said" : null }, word),
          el("i", { style: `width:${Math.max(1, value * 100)}px` }), el("span", { class: "quiet" }, share(value))))))));
  }

  const head = el("tr", {}, el("th", { scope: "col" }, "said"), names.map((name) => el("th", { scope: "col" }, name)));
  const rows = data.target.map((said, place) => el("tr", { class: data.special[place] ? "special" : null },
    el("th", { scope: "row" }, said), layers.map((one, layer) => {
      const first = one.ranks[place] === 1;
      const cell = el("td", { class: first ? "first" : null,
        onclick: () => open(layer, place), onkeydown: (event) => { if (event.key === "Enter") open(layer, place); },
        onmousemove: (event) => hint(told(layer, place), event), onmouseleave: () => hint(null) },
      el("span", { class: "own" }, one.top[place][0][0]), first ? null : el("span", { class: "rank" }, `#${one.ranks[place].toLocaleString("en")}`));
      cells.push({ layer, place, cell });
      return cell;
    })));
  root.append(
    el("style", {}, `
      .lens { display: flex; flex-wrap: wrap; gap: 1.2rem 2rem; align-items: flex-start; } .lens > .scroll { flex: 0 1 auto; }
      .lens table { border-collapse: separate; border-spacing: 2px; font-size: .92rem; }
      .lens th { padding: .1rem .6rem .1rem 0; font-weight: 600; white-space: pre; color: var(--ink); }
      .lens thead th { color: var(--quiet); padding-left: .5rem; } .lens tr.special th { color: var(--quiet); }
      .lens td { padding: .12rem .5rem; border: 1px solid var(--line); border-radius: .3rem; cursor: pointer; min-width: 4.5rem; white-space: pre; }
      .lens td.picked { outline: 2px solid var(--accent); } .lens td .rank { font-size: .78rem; margin-left: .4rem; }
      .lens td:not(.first) .own { font-style: italic; }
      .lens-detail { flex: 1 1 18rem; position: sticky; top: 1rem; } .lens-detail h3 { margin: .2rem 0; font-size: 1.05rem; } .lens-detail p { margin: 0 0 .6rem; }
      .lens-layers { display: grid; gap: .8rem; } .lens-layers .now b { color: var(--accent); }
      .lens-word { display: grid; grid-template-columns: 8rem 104px auto; align-items: center; gap: .5rem; font-size: .9rem; }
      .lens-word > span:first-child { overflow: hidden; text-overflow: ellipsis; white-space: pre; } .lens-word .said { font-weight: 700; }
      .lens-word i { display: block; height: .7rem; border-radius: .2rem; background: var(--accent); }`),
    controls(choice("coloured by", [["probability", "probability of the word said"], ["rank", "its rank"]], by, (value) => { by = value; paint(); })),
    el("div", { class: "lens" }, el("div", { class: "scroll" }, el("table", {}, el("thead", {}, head), el("tbody", {}, rows))), detail));
  roving(cells.map(({ cell }) => cell), layers.length);
  onTheme(root, paint);
  paint();
  open(layers.length - 1, 0);
});
