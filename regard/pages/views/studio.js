// The studio: type a sentence, watch the model write, ask why, change something, and see what happens.
import { choice, controls, el, formatNumber, formatPercent, hint, measureOfSearch, roving } from "./kit.js";
import { Refused, makeApi } from "./studio_api.js";
import { differenceLine, outputWords } from "./words.js";
import { meanLook, show as showSteps } from "./steps.js";
import { show as showTree } from "./tree.js";
import { show as showChanges, describeChange } from "./studio_changes.js";
import { formula } from "./studio_formula.js";
import { show as showCorpus } from "./studio_corpus.js";
import { readState, writeState } from "./studio_state.js";
import { saveView } from "./studio_export.js";

const PAUSE = 80;  // milliseconds after the last key before the model is asked
const TABS = [["step", "Step"], ["beam", "Beam"], ["look", "Look"], ["change", "Change"], ["why", "Why"], ["nearest", "Where from"], ["compare", "Compare"], ["corpus", "Corpus"]];
const METHODS = [["weights", "attention weights", null, {}], ["effective", "effective attention", "identify", {}], ["contributions", "contributions and rollout", "contributions", {}],
  ["gradient", "gradients", "attribute", { methods: ["gradient"] }], ["integrated", "integrated gradients", "attribute", { methods: ["integrated"] }],
  ["occlusion", "occlusion", "attribute", { methods: ["occlusion"] }], ["lens", "layer by layer (lens)", "lens", {}], ["direct", "each part's vote (direct)", "direct", {}]];

export function show(modules, data) {
  const state = readState(data);
  const status = el("span", { class: "status", role: "status" });
  const api = makeApi(data.recording, (isThere) => { document.body.dataset.connection = isThere ? "yes" : "lost"; status.textContent = isThere ? "" : "The connection is lost; trying again …"; });
  let about = null, watched = null, unchanged = null, last = "", file = typeof data.state?.attached === "string" ? { name: data.state.attached, content: null } : data.state?.attached || null, asking = null, timer = null, steps = null, pins = [], good = { changes: [], prefix: [] };

  // --- the parts of the page ---
  const models = data.models.filter((model) => model.verb !== "reply");
  const pickModel = el("select", { "aria-label": "model", onchange: () => { state.model = pickModel.value; state.prefix = []; state.changes = []; openModel(); } },
    models.map((model) => el("option", { value: model.name, selected: model.name === state.model }, model.name)));
  const cell = el("span", { class: "quiet cell" });
  const exporting = el("button", { type: "button", onclick: exportPage }, "Export page");
  const sharing = el("button", { type: "button", onclick: share }, "Copy link");
  const inputs = el("div", { class: "inputs" });
  const output = el("div", { class: "output", "aria-live": "polite" }), before = el("div", { class: "before quiet" }), facts = el("div", { class: "facts quiet" }), forks = el("div", { class: "forks" });
  const tabs = TABS.map(([name, text]) => el("button", { type: "button", role: "tab", class: "tab", id: `tab-${name}`, "aria-controls": "view", onclick: () => { state.tab = name; showTab(); } }, text));
  const view = el("div", { id: "view", role: "tabpanel", tabindex: "0" });
  roving(tabs);
  document.getElementById("studio").append(
    el("header", { class: "bar" }, el("h1", {}, "Regard studio"), el("label", {}, el("span", { class: "quiet" }, "model"), pickModel), cell, status, el("span", { class: "grow" }), sharing, data.recording ? null : exporting),
    el("div", { class: "sides" }, el("section", { class: "card", "aria-label": "input" }, inputs), el("section", { class: "card", "aria-label": "output" }, output, before, facts, forks)),
    el("div", { role: "tablist", class: "tabs", "aria-label": "views" }, tabs), view);
  document.addEventListener("keydown", (event) => {
    if (event.altKey && /^[1-8]$/.test(event.key)) { event.preventDefault(); state.tab = TABS[Number(event.key) - 1][0]; showTab(); tabs[Number(event.key) - 1].focus(); }
    if (event.key === "Escape") closeMenu();
  });
  window.addEventListener("hashchange", () => { Object.assign(state, readState(data)); pickModel.value = state.model; openModel(); });
  openModel();

  // --- asking the model ---
  function request(more = {}) {
    const body = { model: state.model, input: state.texts.length > 1 ? state.texts : state.texts[0], attention: true };
    if (file && about?.reads !== "text") { if (file.content) body.file = file.content; if (about.texts < 2) delete body.input; else body.input = state.texts[0]; }
    if (about?.writes) Object.assign(body, { beam: state.beam ?? about.beam, count: Math.min(5, state.beam ?? about.beam) }, state.lengthPenalty !== null ? { length_penalty: state.lengthPenalty } : {}, state.coverage ? { coverage_penalty: state.coverage } : {});
    if (state.prefix.length) body.prefix = state.prefix;
    if (state.changes.length) body.changes = state.changes;
    return { ...body, ...more };
  }
  function unchangedRequest() { const { prefix, changes, ...plain } = request(); return plain; }
  const isReady = () => (about.reads === "image" || about.reads === "sound" ? Boolean(file) : state.texts.every((text) => text.trim()));

  async function openModel() {
    asking?.abort();
    const { verb } = models.find((model) => model.name === state.model);
    about = null;
    putInputs({ reads: { caption: "image", transcribe: "sound", generate: "prompt" }[verb] || "text", texts: state.texts.length, writes: verb !== "predict" });  // until the model is there
    output.replaceChildren(el("p", { class: "quiet" }, "The model is being loaded …"));
    try { about = await api.describe(state.model); } catch (error) { return showError(error); }
    cell.textContent = `${about.arrow} · ${about.cell}`;
    while (state.texts.length < (about.texts || 1)) state.texts.push("");
    state.texts.length = about.reads === "image" ? Math.max(1, about.texts - 1) : about.texts || 1;
    watched = unchanged = null; last = "";
    const focused = document.activeElement?.tagName === "TEXTAREA" ? document.activeElement.selectionEnd : null;
    putInputs(about);
    if (focused !== null) { const box = inputs.querySelector("textarea"); box?.focus(); box?.setSelectionRange(focused, focused); }
    ask();
  }
  function putInputs(about) {
    const names = about.reads === "image" ? ["question"] : about.texts > 1 ? ["first text", "second text"] : about.reads === "prompt" ? ["prompt"] : ["input"];
    const parts = [];
    if (about.reads === "image" || about.reads === "sound") {
      const picture = el("div", { class: "attached" });
      const chooser = el("input", { type: "file", accept: about.reads === "image" ? "image/*" : "audio/*", "aria-label": about.reads, onchange: async () => {
        if (chooser.files[0]) { file = { name: chooser.files[0].name, content: await base64Of(chooser.files[0]) }; showFile(); ask(); }
      } });
      const showFile = () => picture.replaceChildren(file?.content && about.reads === "image" ? el("img", { src: `data:image/png;base64,${file.content}`, alt: file.name }) : el("span", { class: "quiet" }, file ? file.name : `Choose ${about.reads === "image" ? "an image" : "a sound file"}.`));
      parts.push(chooser, picture);
      showFile();
    }
    if (!(about.reads === "image" && about.texts < 2) && about.reads !== "sound") {
      parts.push(...state.texts.map((text, place) => {
        const box = el("textarea", { rows: 3, "aria-label": names[place] || "input", placeholder: about.writes ? "Type or paste a sentence." : "Type a text.", spellcheck: "false", readonly: data.recording ? true : null,
          oninput: () => { state.texts[place] = box.value; state.prefix = []; clearTimeout(timer); timer = setTimeout(() => { if (about.analyses) ask(); }, PAUSE); } });
        box.value = text;
        return el("label", { class: "text-input" }, el("span", { class: "quiet" }, names[place] || "input"), box);
      }));
    }
    inputs.replaceChildren(...parts);
  }
  async function ask() {
    asking?.abort();
    asking = new AbortController();
    const { signal } = asking;
    writeState(state);
    if (!isReady()) { watched = null; output.replaceChildren(el("p", { class: "quiet" }, "The model's output appears here.")); for (const one of [before, facts, forks, view]) one.replaceChildren(); showTab(); return; }
    const started = performance.now();
    const slow = setTimeout(() => { status.textContent = "computing …"; }, 250);
    try {
      const found = await api.watch(request(), { signal });
      unchanged = state.changes.length ? await api.watch(unchangedRequest(), { signal }) : null;
      if (signal.aborted) return;
      const previous = watched;
      watched = found;
      good = { changes: state.changes, prefix: state.prefix };
      state.position = Math.min(state.position, Math.max(0, watched.target.tokens.length - 1));
      document.body.dataset.milliseconds = Math.round(performance.now() - started);
      status.textContent = "";
      putOutput(previous);
      showTab();
      document.body.dataset.answered = String(Number(document.body.dataset.answered || 0) + 1);
    } catch (error) {
      if (error.name === "AbortError") return;
      const isUndone = error instanceof Refused && !api.readOnly && (JSON.stringify(state.changes) !== JSON.stringify(good.changes) || JSON.stringify(state.prefix) !== JSON.stringify(good.prefix));
      if (isUndone) {  // what was refused is taken back, and the reason stays
        Object.assign(state, good);
        await ask();
        before.replaceChildren(el("p", { class: "problem", role: "alert" }, error.message));
      } else showError(error);
    } finally { clearTimeout(slow); if (status.textContent === "computing …") status.textContent = ""; }
  }
  function showError(error) {
    output.replaceChildren(el("p", { class: "problem", role: "alert" }, error instanceof Refused ? error.message : `Something went wrong: ${error.message}`));
    for (const one of [before, facts]) one.replaceChildren();
    if (!(error instanceof Refused)) console.error(error);
    document.body.dataset.problem = error.message;
  }
  function putOutput(previous) {
    const best = watched.hypotheses[0];
    output.replaceChildren(outputWords(watched, { given: watched.prefix + watched.prompt, picked: state.position, chosen: openMenu }));
    const reference = unchanged ? unchanged.text : last;
    before.replaceChildren(...(reference && reference !== watched.text ? [unchanged ? "unchanged model: " : "before: ", differenceLine(reference, watched.text)] : []));
    last = watched.text;
    const ends = { length: "cut at the length limit", repetition: "cut where it began to repeat itself" };
    facts.textContent = best ? [`score ${formatNumber(best.score, 3)}`, `${measureOfSearch(watched.ctc)} ${formatNumber(best.logProb, 2)}`, `${best.length} tokens`, ends[watched.ended], watched.rating ? `confidence ${formatPercent(watched.rating.confidence)} (calibrated; of a word: point at it)` : null,
      about.trainedLength && watched.source.tokens.length > about.trainedLength + 1 ? `longer than the training data (${about.trainedLength} tokens): regard translate splits such texts` : null].filter(Boolean).join(" · ") : "";
    putForks();
  }
  function putForks() {
    const parts = [];
    if (state.prefix.length) parts.push(el("button", { type: "button", onclick: () => { state.prefix = []; ask(); } }, "Back to the model's own output"));
    if (state.changes.length) parts.push(el("span", { class: "quiet" }, `${state.changes.length} ${state.changes.length === 1 ? "change" : "changes"}: ${state.changes.map((one) => describeChange(one, unchanged)).join("; ")} `), el("button", { type: "button", onclick: () => { state.changes = []; ask(); } }, "Undo all"));
    if (about.writes) parts.push(el("button", { type: "button", onclick: () => { pins.push({ text: watched.text, prefix: state.prefix, changes: state.changes, logProb: watched.hypotheses[0]?.logProb, ctc: watched.ctc }); putForks(); } }, "Pin this output"));
    forks.replaceChildren(el("div", { class: "fork-buttons" }, parts), pins.length ? el("ul", { class: "pins", "aria-label": "pinned outputs" }, pins.map((pin, place) => el("li", {},
      el("button", { type: "button", class: "pin", onclick: () => { state.prefix = pin.prefix; state.changes = pin.changes; ask(); } }, pin.text === watched.text ? pin.text : differenceLine(watched.text, pin.text)),
      el("span", { class: "quiet" }, ` ${measureOfSearch(pin.ctc)} ${formatNumber(pin.logProb, 2)} `), el("button", { type: "button", class: "small", "aria-label": "Unpin", onclick: () => { pins.splice(place, 1); putForks(); } }, "×")))) : "");
  }

  // --- what else was likely: a menu at a word, from which the model goes on ---
  let menu = null, opener = null;
  function closeMenu() {
    if (!menu) return;
    const hadFocus = menu.contains(document.activeElement);
    menu.remove();
    menu = null;
    if (hadFocus) (opener?.isConnected ? opener : output.querySelector(`.word[data-position="${opener?.dataset.position}"]`) || output.querySelector(".word"))?.focus();
  }
  function openMenu(position, anchor) {
    closeMenu();
    opener = anchor;
    state.position = position;
    output.querySelectorAll(".word").forEach((one) => one.classList.toggle("picked", one === anchor));
    writeState(state);
    if (["step", "why", "nearest", "look"].includes(state.tab)) showTab();
    const word = watched.target.words[position];
    const positions = watched.target.words.flatMap((one, place) => (one === word ? [place] : []));
    const canFork = about.writes && !api.readOnly;
    const lists = positions.map((place) => {
      const prediction = watched.predictions[place];
      if (!prediction) return null;
      return [positions.length > 1 ? el("div", { class: "quiet" }, watched.target.tokens[place]) : null, ...prediction.candidates.map((one) => {
        const isOwn = one.id === watched.target.ids[place];
        return el("button", { type: "button", role: "menuitem", class: `bar-row${isOwn ? " own" : ""}`, disabled: !canFork || place < watched.prompt || null, onclick: () => {
          closeMenu(); state.prefix = [...watched.target.ids.slice(watched.prompt, place), one.id]; ask();
        } }, el("span", { class: "bar-name" }, one.text.trim() || "␣"), el("span", { class: "bar-track" }, el("i", { style: `width:${Math.max(0.4, 100 * one.probability)}%` })), el("span", { class: "bar-number" }, formatPercent(one.probability)));
      })];
    });
    const items = lists.flat().filter(Boolean);
    if (!items.length) return;
    menu = el("div", { class: "menu", role: "menu", "aria-label": "what else was likely" }, el("div", { class: "quiet" }, canFork ? "Choose another token; the model goes on from there." : "What was likely here."), items);
    document.body.append(menu);
    const box = anchor.getBoundingClientRect();
    menu.style.left = `${Math.max(6, Math.min(box.left + scrollX, innerWidth - menu.offsetWidth - 10))}px`;
    menu.style.top = `${box.bottom + scrollY + 4}px`;
    const buttons = [...menu.querySelectorAll("button:not([disabled])")];
    roving(buttons);
    buttons[0]?.focus();
    setTimeout(() => document.addEventListener("pointerdown", (event) => { if (menu && !menu.contains(event.target)) closeMenu(); }, { once: true }));
  }

  // --- the views ---
  function showTab() {
    closeMenu(); hint(null); steps?.stop?.(); steps = null;
    tabs.forEach((tab, place) => { tab.setAttribute("aria-selected", String(TABS[place][0] === state.tab)); });
    view.setAttribute("aria-labelledby", `tab-${state.tab}`);
    view.className = `view-${state.tab}`;
    writeState(state);
    if (!about) return;
    if (state.tab === "corpus") { putCorpus(); return; }
    if (!watched) { view.replaceChildren(); return; }
    const root = el("div", {}), looked = meanLook(watched.attention);
    const numbers = { watched, about, request: request(), looked, position: state.position, changes: state.changes, instead: state.instead };
    view.replaceChildren(root, formula(state.tab, numbers), saveView(root, () => ({ state: { ...state }, watched }), `${state.model}-${state.tab}`));
    ({ step: putSteps, beam: putBeam, look: putLook, change: putChange, why: putWhy, nearest: putNearest, compare: putCompare })[state.tab](root, looked);
    document.body.dataset.ready = state.tab;
  }
  const tables = new Map();
  function putCorpus() {
    const root = el("div"), search = about.analyses.find((one) => one.name === "reference");
    if (!tables.has(state.model)) tables.set(state.model, { rows: [], running: false, by: null, order: "rising", words: "", which: "all" });
    const kept = tables.get(state.model);
    view.replaceChildren(root, formula("corpus", {}), saveView(root, () => ({ state: { ...state }, rows: kept.rows }), `${state.model}-corpus`));
    showCorpus(root, {
      corpora: data.corpora || [], kept, readOnly: api.readOnly, canExplain: Boolean(search) && !search.reason,
      ask: (corpus, start, count) => api.ask("/v1/corpus", { model: state.model, corpus, start, count }).then((found) => found.outputs),
      open: (row) => { state.texts = row.source.split("\t"); state.prefix = []; state.changes = []; state.tab = "step"; state.position = 0; putInputs(about); ask(); },
      explain: (place, row) => putAnalysisOf(place, "reference", { model: state.model, input: row.source, target: row.reference, options: {} }),
    });
    document.body.dataset.ready = "corpus";
  }
  function putSteps(root, looked) {
    steps = showSteps(root, watched, { at: state.position, looked, moved: (position) => {
      state.position = position; writeState(state);
      output.querySelectorAll(".word").forEach((one) => one.classList.toggle("picked", watched.target.words[Number(one.dataset.position)] === watched.target.words[position]));
      const shown = view.querySelector(".formula"), now = formula("step", { watched, position });
      now.open = shown?.open || false; shown?.replaceWith(now);
    } });
  }
  function putBeam(root) {
    if (!about.writes) { root.append(el("p", { class: "quiet" }, "This model chooses among labels: it has no search.")); return; }
    const slider = (name, least, most, step, value, changed) => {
      const shown = el("output", {}, formatNumber(value, step < 1 ? 2 : 0));
      const made = el("input", { type: "range", min: least, max: most, step, value, "aria-label": name, disabled: api.readOnly || null, oninput: () => { shown.textContent = formatNumber(Number(made.value), step < 1 ? 2 : 0); }, onchange: () => { changed(Number(made.value)); ask(); } });
      return el("label", {}, el("span", { class: "name" }, name), made, shown);
    };
    const canCover = about.attentions.some((one) => one.kind === "source");
    root.append(controls(slider("width", 1, 12, 1, state.beam ?? about.beam, (value) => { state.beam = value; }),
      slider("length penalty", 0, 2, 0.05, state.lengthPenalty ?? about.lengthPenalty, (value) => { state.lengthPenalty = value; }),
      canCover ? slider("coverage penalty", 0, 1, 0.05, state.coverage, (value) => { state.coverage = value; }) : el("span", { class: "quiet" }, "A coverage penalty needs attention to the source, which this model does not have.")));
    const depths = [], most = watched.nodes.reduce((deepest, node, place) => { depths[place] = node.parent < 0 ? 1 : depths[node.parent] + 1; return Math.max(deepest, depths[place]); }, 0);
    const grown = el("output", {}, "all"), tree = el("div");
    const growth = el("input", { type: "range", min: 1, max: most, step: 1, value: most, "aria-label": "search steps shown", oninput: () => grow(Number(growth.value)) });
    let playing = null;
    const play = el("button", { type: "button", onclick: () => {
      if (playing) { clearInterval(playing); playing = null; play.textContent = "Watch it grow"; return; }
      let depth = 1; play.textContent = "Pause"; grow(depth);
      playing = setInterval(() => { depth++; if (depth > most || !root.isConnected) { clearInterval(playing); playing = null; play.textContent = "Watch it grow"; } else { growth.value = depth; grow(depth); } }, 500);
    } }, "Watch it grow");
    function grow(depth) {
      grown.textContent = depth >= most ? "all" : `${depth} of ${most}`;
      const nodes = watched.nodes.filter((_, place) => depths[place] <= depth);  // parents come before their children, so that indices stay
      const numbers = new Map(); let kept = 0;
      watched.nodes.forEach((_, place) => { if (depths[place] <= depth) numbers.set(place, kept++); });
      tree.replaceChildren();
      showTree(tree, { ctc: watched.ctc, hypotheses: depth >= most ? watched.hypotheses : [], nodes: nodes.map((node) => ({ ...node, parent: node.parent < 0 ? -1 : numbers.get(node.parent) })) });
    }
    root.append(controls(play, el("label", {}, el("span", { class: "name" }, "steps"), growth, grown)), tree);
    grow(most);
  }
  function putLook(root) {
    const methods = METHODS.filter(([name, , analysis]) => name === "weights" || about.analyses.some((one) => one.name === analysis));
    const reason = ([name, , analysis]) => (name === "weights" ? (watched.attention?.length ? null : "This model has no attention.") : about.analyses.find((one) => one.name === analysis)?.reason);
    if (reason(methods.find(([name]) => name === state.method) || methods[0])) state.method = (methods.find((one) => !reason(one)) || methods[0])[0];
    const pane = el("div");
    const picker = el("select", { "aria-label": "method", onchange: () => { state.method = picker.value; writeState(state); put(); } },
      methods.map((one) => el("option", { value: one[0], selected: one[0] === state.method, disabled: Boolean(reason(one)), title: reason(one) || "" }, reason(one) ? `${one[1]} (${reason(one)})` : one[1])));
    root.append(controls(el("label", {}, el("span", { class: "name" }, "method"), picker)), pane);
    function put() {
      const [name, , analysis, options] = methods.find((one) => one[0] === state.method);
      pane.replaceChildren();
      if (name === "weights") putPanels(pane, watched.attention || []);
      else putAnalysis(pane, analysis, options);
    }
    put();
  }
  /** The panels of an analysis of the output that is shown; computed with a note and a way to cancel. */
  async function putAnalysis(root, analysis, options) {
    if (state.changes.length) root.append(el("p", { class: "quiet" }, "This is computed with the unchanged model, for the output shown above."));
    const { input, model, file: attached } = request();
    const body = { model, ...(input === undefined ? {} : { input }), ...(attached ? { file: attached } : {}), options };
    if (about.writes && about.reads !== "prompt") body.target = watched.text;
    return putAnalysisOf(root, analysis, body);
  }
  async function putAnalysisOf(root, analysis, body) {
    const cancel = new AbortController(), bar = el("progress", { "aria-label": "progress" }), label = el("span", {}, " computing … "), waiting = el("p", { class: "waiting" }, bar, label, el("button", { type: "button", onclick: () => { cancel.abort(); waiting.replaceChildren("Cancelled."); } }, "Cancel"));
    if (!api.knows(analysis, body)) root.append(waiting);
    try {
      const found = await api.inspect(analysis, body, { signal: cancel.signal, progress: (task, done, count) => {
        label.textContent = ` ${task}: ${done}${count ? ` of ${count}` : ""} `;
        if (count) { bar.max = count; bar.value = done; }
      } });
      waiting.remove();
      if (root.isConnected) putPanels(root, found.panels);
    } catch (error) {
      if (error.name !== "AbortError") waiting.replaceChildren(el("span", { class: error instanceof Refused ? "reason quiet" : "problem", role: "alert" }, error.message));
      if (!waiting.isConnected) root.append(waiting);
    }
  }
  function putPanels(root, panels) {
    if (!panels.length) root.append(el("p", { class: "quiet" }, "There is nothing to show for this model."));
    for (const panel of panels) {
      const body = el("div", { class: "view" });
      root.append(el("section", { class: "panel" }, panel.title ? el("h2", {}, panel.title) : null, body, panel.note ? el("details", { class: "note" }, el("summary", {}, "How to read this"), el("p", {}, panel.note)) : null));
      try { modules[panel.view].show(body, panel.view === "influence" ? { ...panel.data, picked: state.position } : panel.data); } catch (error) { console.error(error); body.append(el("p", { class: "quiet" }, `This part cannot be shown: ${error.message}`)); }
    }
    document.body.dataset.panels = String(panels.length);
  }
  function putChange(root) {
    showChanges(root, { about, watched, unchanged, changes: state.changes, request: request(), set: (changes) => {
      if (api.readOnly) return;
      state.changes = changes; ask();
    } });
  }
  function putWhy(root) {
    const word = watched.target.words[state.position], prediction = watched.predictions[state.position];
    const chips = outputWords(watched, { picked: state.position, chosen: (position) => { state.position = position; state.instead = ""; showTab(); } });
    const own = watched.target.ids[state.position], others = (prediction?.candidates || []).filter((one) => one.id !== own).map((one) => one.text.trim()).filter((text) => text && !text.startsWith("<"));
    const other = el("input", { type: "text", list: "others", value: state.instead, placeholder: others[0] || "another word", "aria-label": "instead of this word" });
    const pane = el("div"), analyses = about.analyses, can = (name) => { const found = analyses.find((one) => one.name === name); return found && !found.reason; };
    const method = choice("by", [["gradient", "gradients"], ["integrated", "integrated gradients"], ["occlusion", "occlusion"]], state.whyMethod, (value) => { state.whyMethod = value; put(); });
    root.append(el("div", { class: "quiet" }, "Why this word?"), chips, controls(about.writes ? el("label", {}, el("span", { class: "name" }, `why “${watched.target.wordTexts[word]}” and not`), other, el("datalist", { id: "others" }, others.map((text) => el("option", { value: text })))) : null, method,
      el("button", { type: "button", onclick: () => { state.instead = other.value.trim(); put(); } }, "Ask")), pane);
    function put() {
      writeState(state);
      const options = { methods: [state.whyMethod], ...(state.instead ? { instead: state.instead, at: word + 1 } : {}) };
      pane.replaceChildren(el("h2", {}, "Which words made it likely"));
      const first = el("div"), second = el("div"), third = el("div");
      pane.append(first);
      const problem = analyses.find((one) => one.name === "attribute")?.reason;
      if (problem) first.append(el("p", { class: "quiet" }, problem)); else putAnalysis(first, "attribute", options);
      if (can("contributions")) { pane.append(el("h2", {}, "How much comes from the source"), third); putAnalysis(third, "contributions", {}); }
      if (can("lens")) { pane.append(el("h2", {}, "Which layer decided it"), second); putAnalysis(second, "lens", {}); }
    }
    put();
  }
  function putNearest(root) {
    const analysis = about.analyses.find((one) => one.name === "nearest");
    if (!analysis || analysis.reason) { root.append(el("p", { class: "quiet" }, analysis?.reason || "This version has no index of training examples."), el("pre", {}, `regard index ${about.run}`)); return; }
    const pane = el("div"), sides = about.writes && about.reads === "text";
    const source = el("select", { "aria-label": "source token", onchange: () => { state.sourcePosition = Number(source.value); put(); } }, watched.source.tokens.map((token, place) => el("option", { value: place, selected: place === state.sourcePosition }, `${place}: ${token}`)));
    root.append(el("p", { class: "quiet" }, "Training examples with the most similar states: what in the data taught it this."),
      controls(sides ? choice("state of", [["decoder", `the output word “${watched.target.tokens[state.position]}”`], ["encoder", "a source word"]], state.side, (side) => { state.side = side; showTab(); }) : null, !sides || state.side === "encoder" ? source : null), pane);
    const side = sides ? state.side : null;
    function put() {
      writeState(state);
      pane.replaceChildren();
      putAnalysis(pane, "nearest", { count: 8, ...(side ? { side } : {}), position: side === "decoder" ? state.position : Math.min(state.sourcePosition, watched.source.tokens.length - 1) });
    }
    put();
  }
  async function putCompare(root) {
    const steps = about.steps || [];
    const kinds = [...(models.length > 1 ? [["model", "another model"]] : []), ["text", "another sentence"], ...(steps.length ? [["step", "a checkpoint of its training"]] : [])];
    if (!kinds.some(([kind]) => kind === state.against)) state.against = kinds[0][0];
    const columns = el("div", { class: "columns" }), left = el("div", { class: "column" }), right = el("div", { class: "column" });
    const otherModels = models.filter((model) => model.name !== state.model);
    const picker = el("select", { "aria-label": "other model", onchange: () => { state.otherModel = picker.value; put(); } }, otherModels.map((model) => el("option", { value: model.name, selected: model.name === state.otherModel }, model.name)));
    const sentence = el("input", { type: "text", value: state.otherText, placeholder: "another sentence", "aria-label": "another sentence", onchange: () => { state.otherText = sentence.value; put(); } });
    const reached = el("output"), slider = el("input", { type: "range", min: 0, max: Math.max(0, steps.length - 1), step: 1, value: Math.max(0, steps.indexOf(state.otherStep)), "aria-label": "training step",
      oninput: () => { reached.textContent = `step ${formatNumber(steps[Number(slider.value)], 0)}`; }, onchange: () => { state.otherStep = steps[Number(slider.value)]; put(); } });
    const trained = el("label", {}, slider, reached);
    reached.textContent = steps.length ? `step ${formatNumber(steps[Number(slider.value)], 0)}` : "";
    root.append(controls(choice("compare with", kinds, state.against, (kind) => { state.against = kind; showTab(); }), { model: picker, text: sentence, step: trained }[state.against]), columns);
    columns.append(left, right);
    async function put() {
      writeState(state);
      const body = request();
      if (state.against === "model") { body.model = state.otherModel || otherModels[0]?.name; delete body.changes; delete body.prefix; delete body.beam; delete body.count; delete body.length_penalty; }
      else if (state.against === "step") { body.step = state.otherStep ?? steps[0]; }
      else { if (!state.otherText.trim()) { columns.replaceChildren(el("p", { class: "quiet" }, "Write another sentence to compare with.")); return; } body.input = state.texts.length > 1 ? [...state.texts.slice(0, -1), state.otherText] : state.otherText; delete body.prefix; }
      columns.replaceChildren(left, right);
      left.replaceChildren(); right.replaceChildren();
      const column = (place, name, found) => {
        place.append(el("h2", {}, name), outputWords(found), found.hypotheses[0] ? el("p", { class: "quiet" }, `${measureOfSearch(found.ctc)} ${formatNumber(found.hypotheses[0].logProb, 2)}, ${found.hypotheses[0].length} tokens`) : "");
        putPanels(place, found.attention || []);
      };
      column(left, { model: state.model, text: state.texts[0], step: "finished" }[state.against], watched);
      try {
        const found = await api.watch(body);
        column(right, { model: body.model, text: state.otherText, step: `step ${formatNumber(body.step, 0)}` }[state.against], found);
        right.querySelector(".output-words").after(el("p", {}, differenceLine(watched.text, found.text)));
      } catch (error) { right.append(el("p", { class: "problem", role: "alert" }, error.message)); }
    }
    put();
  }

  // --- sharing ---
  async function share(event) {
    writeState(state);
    const button = event.currentTarget;
    try { await navigator.clipboard.writeText(location.href); button.textContent = "Copied"; } catch { button.textContent = "The link is in the address bar"; }
    setTimeout(() => { button.textContent = "Copy link"; }, 1800);
  }
  async function exportPage() {
    const page = await fetch("/v1/studio/export", { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ state: { ...state, attached: file }, recording: api.recording() }) });
    if (!page.ok) { status.textContent = `The page could not be exported: ${(await page.json().catch(() => ({}))).error || page.status}`; return; }
    const link = el("a", { href: URL.createObjectURL(await page.blob()), download: "studio.html" });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
    document.body.dataset.exported = "yes";
  }
}
async function base64Of(file) {
  const bytes = new Uint8Array(await file.arrayBuffer());
  let text = "";
  for (let at = 0; at < bytes.length; at += 0x8000) text += String.fromCharCode(...bytes.subarray(at, at + 0x8000));
  return btoa(text);
}
