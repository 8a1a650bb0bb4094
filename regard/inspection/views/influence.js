// A sentence pair in which a word of the output can be picked: the tokens that it came from are tinted, by any method.
import { choice, controls, el, formatNumber, formatPercent, heading, hint, roving, scroller, shader, tint } from "./kit.js";
import { heatmap, key, largest, scalingChoice, scalingNote } from "./heatmap.js";

export function show(root, data) {
  const state = { question: 0, method: 0, level: "tokens", against: -1, perRow: true, picked: Math.min(data.picked ?? 0, data.target.tokens.length - 1), over: null };
  const methods = () => data.questions[state.question].methods;
  const kept = { output: null, read: null, maps: [] };
  const names = (side) => (state.level === "words" ? data[side].wordTexts : data[side].tokens);

  /** The rows of a method: source and prefix next to each other. */
  function rows(method) {
    const found = method[state.level];
    return found.source.map((row, index) => [...row, ...found.prefix[index]]);
  }
  const total = (row) => row.reduce((sum, value) => sum + Math.abs(value), 0);
  const shares = (row) => { const all = total(row); return row.map((value) => (all ? value / all : 0)); };
  /** What is shown: the method's own values, or how its shares differ from another's. */
  function shown() {
    const own = rows(methods()[state.method]);
    if (state.against < 0) return own;
    const other = rows(methods()[state.against]).map(shares);
    return own.map(shares).map((row, r) => row.map((value, c) => value - other[r][c]));
  }
  const signed = () => state.against >= 0 || methods()[state.method].signed;
  const unit = () => (state.against >= 0 ? "of its row" : methods()[state.method].signed ? "nats" : "");
  const firstPrefix = () => names("source").length;
  /** How many prefix columns a row has read: those up to its own index. */
  const reach = (row) => (state.level === "words" ? row + 2 : row + 1);
  const sourceShare = (row) => { const split = firstPrefix(), all = total(row); return all ? total(row.slice(0, split)) / all : 0; };
  /** Source shares of the method by itself; none where they are not defined. */
  function split() {
    const method = methods()[state.method];
    return state.against >= 0 || !method.splits ? null : rows(method).map(sourceShare);
  }
  const low = (index) => (state.level === "words" ? data.gain.unsupported : data.gain.flagged)[index];

  const pane = el("div", { class: "influence-pane" }), readout = scroller("numbers of the picked word"), maps = el("div");
  readout.classList.add("influence-readout");
  const note = el("p", { class: "quiet" }), bar = el("div", { class: "legend" });

  function chip(name, index, more = {}) {
    return el("span", { class: "token", ...more }, el("span", { class: "text" }, name));
  }
  /** Make the pane again when words become tokens; otherwise only its colours change. */
  function build() {
    kept.read = names("source").map((name, index) => chip(name, index, {
      onmousemove: (event) => hint(`${name}: ${value(current(), index)}`, event), onmouseleave: () => hint(null) }));
    const before = names("inputs")[0];
    kept.start = chip(before, 0, { class: "token start",
      onmousemove: (event) => hint(`${before}: ${value(current(), firstPrefix())}`, event), onmouseleave: () => hint(null) });
    kept.output = names("target").map((name, index) => {
      const made = chip(name, index, { class: "token output", role: "button", "aria-pressed": "false",
        onclick: () => pick(index), onkeydown: (event) => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); pick(index); } },
        onmouseenter: () => { state.over = index; shade(); }, onmouseleave: () => { state.over = null; shade(); } });
      made.append(el("span", { class: "bar", "aria-hidden": "true" }, el("i")));
      return made;
    });
    roving(kept.output);
    pane.replaceChildren(el("div", { class: "quiet" }, "source"), scroller("source", el("div", { class: "tokens source" }, kept.read)),
      el("div", { class: "quiet" }, "output"), scroller("output", el("div", { class: "tokens target" }, kept.start, kept.output)));
    draw();
  }
  const current = () => state.over ?? state.picked;
  const value = (row, column) => {
    const found = shown()[row][column];
    return `${signed() && found > 0 ? "+" : ""}${formatNumber(found, 3)} ${unit()}`.trim();
  };
  function pick(index) { state.picked = index; shade(); }

  /** The colours of the sentence for the word that is picked or pointed at. */
  function shade() {
    const row = shown()[current()], top = Math.max(...row.map(Math.abs)) || 1, shadeOf = shader(signed()), at = firstPrefix();
    const colourOf = (span, amount) => tint(span.querySelector(".text"), amount === null ? null : shadeOf(amount / top));
    kept.read.forEach((span, index) => colourOf(span, row[index]));
    colourOf(kept.start, row[at]);
    const parts = split();
    kept.output.forEach((span, index) => {
      colourOf(span, index + 1 < reach(current()) && index < current() ? row[at + index + 1] : null);
      span.classList.toggle("picked", index === current());
      span.setAttribute("aria-pressed", String(index === state.picked));
      span.querySelector(".bar").hidden = !parts;
      if (parts) span.querySelector(".bar i").style.width = `${100 * parts[index]}%`;
      span.classList.toggle("low", low(index));
    });
    kept.maps.forEach((map) => map.mark(current()));
    showReadout(parts);
  }
  /** The word in numbers: its chance, its source share, the strongest influences, and the alternatives. */
  function showReadout(parts) {
    const index = current(), row = shown()[index], name = names("target")[index];
    const pieces = data.target.words.map((word, token) => [word, token]).filter(([word, token]) => (state.level === "words" ? word : token) === index).map(([, token]) => token);
    const chance = pieces.reduce((product, token) => product * data.probabilities[token], 1);
    const columns = [...names("source"), ...names("inputs")], split = firstPrefix();
    const most = row.map((amount, column) => [amount, column]).filter(([amount]) => amount !== 0)
      .sort((a, b) => Math.abs(b[0]) - Math.abs(a[0])).slice(0, 6);
    const asked = (data.explanations || [])[state.question], facts = [`P ${formatNumber(chance, 3)}`];
    const gain = (state.level === "words" ? data.gain.words : data.gain.tokens)[index];
    facts.push(`gain from the source ${gain > 0 ? "+" : ""}${formatNumber(gain)} nats`);
    if (parts) facts.push(`source ${formatPercent(parts[index])}, prefix ${formatPercent(1 - parts[index])}`);
    if (asked && asked.others && state.level === "tokens") facts.push(`against “${asked.others[index]}”`);
    if (asked && methods()[state.method].signed && state.against < 0) {
      const all = pieces.reduce((sum, token) => sum + asked.explained[token], 0);
      const covered = asked.covered && asked.covered[methods()[state.method].name];
      facts.push(covered ? `amounts cover ${formatNumber(pieces.reduce((sum, token) => sum + covered[token], 0))} of ${formatNumber(all)} nats` : `all tokens together ${all > 0 ? "+" : ""}${formatNumber(all)} nats`);
      if (methods()[state.method].name === "integrated gradients" && asked.gaps) {
        const wide = pieces.some((token) => asked.wide.includes(token));
        facts.push(`gap ${formatNumber(pieces.reduce((sum, token) => sum + asked.gaps[token], 0), 3)}${wide ? ": wide, do not trust small amounts" : ""}`);
      }
    }
    readout.replaceChildren(
      el("div", {}, el("strong", {}, name), " ", el("span", { class: "quiet" }, facts.join(" · ")),
        low(index) ? el("span", { class: "warn" }, " · less likely with its source than with a blank one: perhaps invented") : null),
      el("div", { class: "most" }, most.map(([amount, column]) => el("span", { class: "given" },
        `${columns[column]}${column >= split ? " (prefix)" : ""} `, el("b", { class: amount < 0 ? "minus" : "" }, `${signed() && amount > 0 ? "+" : ""}${formatNumber(amount)}`)))),
      el("div", { class: "might" }, pieces.map((token) => el("div", {}, el("span", { class: "quiet" }, "alternatives "),
        data.alternatives[token].map(([text, chance]) => el("span", { class: `given${text === data.target.tokens[token] ? " own" : ""}` },
          el("i", { style: `width:${Math.max(1, 48 * chance)}px` }), `${text} ${formatNumber(chance)}`))))));
  }
  /** Two maps of all rows, source and prefix, each with its own scroller; both scroll up and down together. */
  function draw() {
    const at = firstPrefix(), found = shown(), top = Math.max(...found.map(largest)) || 1;
    const tops = found.map((row) => (state.perRow ? largest(row) : top) || 1);
    const rowNames = names("target"), method = methods()[state.method];
    const across = [names("source").length, names("inputs").length], narrow = root.clientWidth < 700;
    const fits = narrow ? Math.floor((root.clientWidth - 100) / Math.max(...across)) : Math.floor((root.clientWidth - 260) / (across[0] + across[1]));
    const size = Math.max(11, Math.min(26, Math.floor(900 / rowNames.length), fits));
    const half = (side, columns, first, title) => {
      const cells = found.map((row, r) => columns.map((_, c) => (side === "prefix" && c >= reach(r) ? null : row[first + c])));
      const map = heatmap({ rows: rowNames, columns, values: cells, tops, signed: signed(), size, label: `${method.name}, ${title}`,
        hover: (r, c) => (cells[r][c] === null ? null : `${rowNames[r]} ← ${columns[c]}${side === "prefix" ? " (prefix)" : ""}: ${value(r, first + c)}`),
        pick: (r) => pick(r), pickName: (r) => { if (r !== null) pick(r); },
        over: (r) => { state.over = r; shade(); }, out: () => { state.over = null; shade(); } });
      map.element.classList.add("influence-map", side);
      const shrinks = columns.length * size > 0.4 * root.clientWidth ? 1 : 0;  // the longer half gives way first
      return [map, el("div", { class: "influence-half", style: narrow ? "" : `flex:0 ${shrinks} auto` }, heading(root, {}, title), map.element)];
    };
    const [[source, left], [prefix, right]] = [half("source", names("source"), 0, "from the source"), half("prefix", names("inputs"), at, "from the prefix")];
    kept.maps = [source, prefix];
    for (const [map, other] of [[source, prefix], [prefix, source]]) {
      map.element.addEventListener("scroll", () => { other.element.scrollTop = map.element.scrollTop; }, { passive: true });
    }
    maps.className = "influence-maps";
    maps.replaceChildren(left, right);
    const heads = kept.maps.map((map) => map.element.querySelector(".map-columns"));
    const tallest = Math.max(...heads.map((head) => head.offsetHeight));
    heads.forEach((head) => { head.style.minHeight = `${tallest}px`; });  // so that rows stand at equal heights
    bar.replaceChildren(key({ top, signed: signed(), perRow: state.perRow, unit: unit() }), el("span", {}, scalingNote(state.perRow)));
    note.textContent = state.against >= 0
      ? `Blue where ${method.name} gives a token a larger share of its row than ${methods()[state.against].name}, red where a smaller one.` : method.note;
    shade();
  }

  const switches = el("div");
  /** The controls; another question may have other methods. */
  function arrange() {
    const options = methods().map((method, index) => [index, method.name]);
    switches.replaceChildren(controls(
      data.questions.length > 1 ? choice("why", data.questions.map((question, index) => [index, question.name.replace(/^why it was /, "")]), state.question, (chosen) => { state.question = chosen; draw(); }) : null,
      choice("level", [["tokens", "tokens"], ["words", "words"]], state.level, (chosen) => {
        const at = chosen === "words" ? data.target.words[state.picked] : data.target.words.indexOf(state.picked);
        state.level = chosen; state.picked = at; state.over = null; build();
      }),
      scalingChoice(state.perRow, (perRow) => { state.perRow = perRow; draw(); })),
    controls(options.length > 1 ? choice("method", options, state.method, (chosen) => { state.method = chosen; draw(); }) : null,
      options.length > 1 ? choice("minus", [[-1, "nothing"], ...options], state.against, (chosen) => { state.against = chosen; draw(); }, { list: true }) : null));
  }
  root.append(switches, pane, readout, bar, maps, note);
  arrange();
  build();
}
