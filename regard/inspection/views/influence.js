// A sentence pair in which a word that was said can be picked: what it was read from is tinted, by any method.
view("influence", (root, data) => {
  const state = { question: 0, method: 0, level: "tokens", against: -1, alike: false, picked: 0, over: null };
  const methods = () => data.questions[state.question].methods;
  const kept = { said: null, read: null, map: null };
  const names = (side) => (state.level === "words" ? data[side].wordTexts : data[side].tokens).map((one) => ({ "</s>": "↵" }[one] || one));

  /** The rows of a method: source and prefix beside each other. */
  function rows(method) {
    const found = method[state.level];
    return found.source.map((row, place) => [...row, ...found.prefix[place]]);
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
  /** How many prefix columns a row has read: those up to its own place. */
  const reach = (row) => (state.level === "words" ? row + 2 : row + 1);
  const sourceShare = (row) => { const split = firstPrefix(), all = total(row); return all ? total(row.slice(0, split)) / all : 0; };
  /** Source shares of the method by itself; none where they would mean nothing. */
  function split() {
    const method = methods()[state.method];
    return state.against >= 0 || !method.splits ? null : rows(method).map(sourceShare);
  }
  const low = (place) => (state.level === "words" ? data.gain.unsupported : data.gain.flagged)[place];

  const pane = el("div", { class: "influence-pane" }), told = el("div", { class: "influence-told" }), maps = el("div");
  const note = el("p", { class: "quiet" }), bar = el("div", { class: "legend" });

  function chip(name, place, more = {}) {
    return el("span", { class: "token", ...more }, el("span", { class: "text" }, name));
  }
  /** The pane is made anew when words become tokens; else only its colours change. */
  function build() {
    kept.read = names("source").map((name, place) => chip(name, place, {
      onmousemove: (event) => hint(`${name}: ${value(current(), place)}`, event), onmouseleave: () => hint(null) }));
    const before = names("inputs")[0];
    kept.start = chip(before, 0, { class: "token start",
      onmousemove: (event) => hint(`${before}: ${value(current(), firstPrefix())}`, event), onmouseleave: () => hint(null) });
    kept.said = names("target").map((name, place) => {
      const made = chip(name, place, { class: "token said", role: "button", "aria-pressed": "false",
        onclick: () => pick(place), onkeydown: (event) => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); pick(place); } },
        onmouseenter: () => { state.over = place; tint(); }, onmouseleave: () => { state.over = null; tint(); } });
      made.append(el("span", { class: "bar", "aria-hidden": "true" }, el("i")));
      return made;
    });
    roving(kept.said);
    pane.replaceChildren(el("div", { class: "quiet" }, "source"), el("div", { class: "tokens source" }, kept.read),
      el("div", { class: "quiet" }, "said"), el("div", { class: "tokens target" }, kept.start, kept.said));
    draw();
  }
  const current = () => state.over ?? state.picked;
  const value = (row, column) => {
    const found = shown()[row][column];
    return `${signed() && found > 0 ? "+" : ""}${say(found, 3)} ${unit()}`.trim();
  };
  function pick(place) { state.picked = place; tint(); }

  /** The colours of the sentence for the word that is picked or pointed at. */
  function tint() {
    const row = shown()[current()], top = Math.max(...row.map(Math.abs)) || 1, shadeOf = shader(signed()), at = firstPrefix();
    const colourOf = (span, amount) => {
      const text = span.querySelector(".text");
      text.style.background = amount === null ? "" : shadeOf(amount / top);
      text.style.color = amount !== null && Math.abs(amount / top) > 0.45 ? "var(--paper)" : "";
    };
    kept.read.forEach((span, place) => colourOf(span, row[place]));
    colourOf(kept.start, row[at]);
    const parts = split();
    kept.said.forEach((span, place) => {
      colourOf(span, place + 1 < reach(current()) && place < current() ? row[at + place + 1] : null);
      span.classList.toggle("picked", place === current());
      span.setAttribute("aria-pressed", String(place === state.picked));
      span.querySelector(".bar").hidden = !parts;
      if (parts) span.querySelector(".bar i").style.width = `${100 * parts[place]}%`;
      span.classList.toggle("low", low(place));
    });
    kept.map.mark(current());
    tell(parts);
  }
  /** The word in numbers: its chance, its source share, what spoke most, and what might have been said. */
  function tell(parts) {
    const place = current(), row = shown()[place], name = names("target")[place];
    const pieces = data.target.words.map((word, token) => [word, token]).filter(([word, token]) => (state.level === "words" ? word : token) === place).map(([, token]) => token);
    const chance = pieces.reduce((product, token) => product * data.probabilities[token], 1);
    const columns = [...names("source"), ...names("inputs")], split = firstPrefix();
    const most = row.map((amount, column) => [amount, column]).filter(([amount]) => Math.abs(amount) > 5e-4)
      .sort((a, b) => Math.abs(b[0]) - Math.abs(a[0])).slice(0, 6);
    const asked = (data.explanations || [])[state.question], facts = [`P ${say(chance, 3)}`];
    const gain = (state.level === "words" ? data.gain.words : data.gain.tokens)[place];
    facts.push(`gain from the source ${gain > 0 ? "+" : ""}${say(gain)} nats`);
    if (parts) facts.push(`source ${Math.round(100 * parts[place])} %, prefix ${Math.round(100 * (1 - parts[place]))} %`);
    if (asked && asked.others && state.level === "tokens") facts.push(`against “${asked.others[place]}”`);
    if (asked && methods()[state.method].signed && state.against < 0) {
      const all = pieces.reduce((sum, token) => sum + asked.explained[token], 0);
      const covered = asked.covered && asked.covered[methods()[state.method].name];
      facts.push(covered ? `amounts cover ${say(pieces.reduce((sum, token) => sum + covered[token], 0))} of ${say(all)} nats` : `all tokens together ${all > 0 ? "+" : ""}${say(all)} nats`);
      if (methods()[state.method].name === "integrated gradients" && asked.gaps) {
        const wide = pieces.some((token) => asked.wide.includes(token));
        facts.push(`gap ${say(pieces.reduce((sum, token) => sum + asked.gaps[token], 0), 3)}${wide ? ": wide, do not trust small amounts" : ""}`);
      }
    }
    told.replaceChildren(
      el("div", {}, el("strong", {}, name), " ", el("span", { class: "quiet" }, facts.join(" · ")),
        low(place) ? el("span", { class: "warn" }, " · less likely with its source than with a blank one: perhaps invented") : null),
      el("div", { class: "most" }, most.map(([amount, column]) => el("span", { class: "given" },
        `${columns[column]}${column >= split ? " (prefix)" : ""} `, el("b", { class: amount < 0 ? "minus" : "" }, `${signed() && amount > 0 ? "+" : ""}${say(amount)}`)))),
      el("div", { class: "might" }, pieces.map((token) => el("div", {}, el("span", { class: "quiet" }, "might have said "),
        data.alternatives[token].map(([text, chance]) => el("span", { class: `given${text === data.target.tokens[token] ? " own" : ""}` },
          el("i", { style: `width:${Math.max(1, 48 * chance)}px` }), `${{ "</s>": "↵" }[text] || text} ${say(chance)}`))))));
  }
  /** The map of all rows; each by its own largest value, or all alike. */
  function draw() {
    const at = firstPrefix(), found = shown(), largest = (row) => Math.max(...row.map(Math.abs)) || 1;
    const top = Math.max(...found.map(largest));
    const cells = found.map((row, r) => {
      const by = state.alike ? top : largest(row);
      return [...row.slice(0, at).map((one) => one / by), null, ...row.slice(at).map((one, place) => (place < reach(r) ? one / by : null))];
    });
    const columns = [...names("source"), "", ...names("inputs")], said = names("target");
    const across = (column) => (column > at ? column - 1 : column);
    kept.map = heatmap({ rows: said, columns, values: cells, signed: signed(), label: methods()[state.method].name,
      hover: (r, c) => (c === at || cells[r][c] === null ? null : `${said[r]} ← ${columns[c]}${c > at ? " (prefix)" : ""}: ${value(r, across(c))}`),
      pick: (r) => pick(r), over: (r) => { state.over = r; tint(); }, out: () => { state.over = null; tint(); } });
    kept.map.element.classList.add("influence-map");
    maps.replaceChildren(kept.map.element);
    bar.replaceChildren(scale(state.alike ? top : 1, signed()), el("span", {}, state.alike ? unit() : "of the largest in its row"),
      el("span", {}, "left: source; right: prefix"));
    const method = methods()[state.method];
    note.textContent = state.against >= 0
      ? `Blue where ${method.name} gives a token a larger share of its row than ${methods()[state.against].name}, red where a smaller one.` : method.note;
    tint();
  }

  const switches = el("div");
  /** The controls; another question may have other methods. */
  function arrange() {
    const options = methods().map((one, place) => [place, one.name]);
    switches.replaceChildren(controls(
      data.questions.length > 1 ? choice("why", data.questions.map((one, place) => [place, one.name.replace(/^why it was /, "")]), state.question, (chosen) => { state.question = chosen; draw(); }) : null,
      choice("level", [["tokens", "tokens"], ["words", "words"]], state.level, (chosen) => {
        const at = chosen === "words" ? data.target.words[state.picked] : data.target.words.indexOf(state.picked);
        state.level = chosen; state.picked = at; state.over = null; build();
      }),
      toggle("one scale for all rows", state.alike, (on) => { state.alike = on; draw(); })),
    controls(options.length > 1 ? choice("method", options, state.method, (chosen) => { state.method = chosen; draw(); }) : null,
      options.length > 1 ? choiceList("minus", [[-1, "nothing"], ...options], state.against, (chosen) => { state.against = chosen; draw(); }) : null));
  }
  function choiceList(name, options, chosen, changed) {
    const list = el("select", { "aria-label": name, onchange: () => changed(options[list.selectedIndex][0]) },
      options.map(([value, text]) => el("option", { selected: value === chosen }, text)));
    return el("label", {}, el("span", { class: "name" }, name), list);
  }

  root.append(switches, pane, told, bar, maps, note);
  arrange();
  build();
});
