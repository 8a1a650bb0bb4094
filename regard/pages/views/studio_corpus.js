// A test set as a table: sort by the worst, filter, open a row in the other views, and ask what its reference would have cost.
import { choice, controls, el, formatNumber, formatPercent, scroller } from "./kit.js";

const BATCH = 16, MOST_SHOWN = 200;
const COLUMNS = {
  text: [["chrf", "chrF", 1, "rising"], ["bleu", "BLEU", 1, "rising"], ["confidence", "confidence", "share", "rising"], ["output_log_prob", "log P per token", 2, "rising"], ["reference_log_prob", "of the reference", 2, "rising"],
    ["gap", "reference − output", 2, "falling"], ["source_tokens", "source tokens", 0, "falling"], ["output_tokens", "output tokens", 0, "falling"]],
  answer: [["right", "right", "yes", "rising"], ["probability", "probability", "share", "falling"], ["reference_probability", "of the right one", "share", "rising"], ["difference", "difference", 2, "falling"]],
  document: [["log_prob", "log P per token", 2, "rising"], ["tokens", "tokens", 0, "falling"]],
};

/** `ask(corpus, start, count)` returns rows; `open(row)` shows one in the other views; `explain(root, row)` fills in what its reference would have cost. */
export function show(root, { corpora, kept, ask, open, explain, canExplain, readOnly }) {
  if (!corpora.length) {
    root.append(el("p", { class: "quiet" }, "Start the studio with a corpus to see its outputs here:"), el("pre", {}, "regard studio RUN --corpus test.en test.de"));
    return;
  }
  const corpus = corpora[0], rows = kept.rows;
  const bar = el("progress", { max: corpus.size, value: rows.length, "aria-label": "examples done" }), status = el("span", { class: "quiet", role: "status" });
  const button = el("button", { type: "button", onclick: () => (kept.running ? stop() : run()) });
  const field = el("input", { type: "search", placeholder: "words", "aria-label": "filter by words", value: kept.words, oninput: () => { kept.words = field.value; put(); } });
  const table = el("div"), detail = el("div", { class: "corpus-detail" });
  root.append(controls(bar, status, button, el("label", {}, el("span", { class: "name" }, "containing"), field),
    choice("show", [["all", "all"], ["wrong", "worst half"], ["left", "reference more probable"]], kept.which, (which) => { kept.which = which; put(); })), table, detail);

  async function run() {
    kept.running = true;
    put();
    try {
      while (kept.running && rows.length < corpus.size) {
        rows.push(...await ask(corpus.name, rows.length, BATCH));
        if (!root.isConnected) { kept.running = false; return; }
        put();
      }
    } catch (error) { status.textContent = error.message; kept.running = false; button.textContent = "Go on"; return; }
    kept.running = false;
    put();
  }
  function stop() { kept.running = false; put(); }
  function columns() { const one = rows[0]; return !one ? [] : "chrf" in one ? COLUMNS.text : "right" in one ? COLUMNS.answer.filter(([name]) => rows.some((row) => row[name] !== null)) : COLUMNS.document; }
  const value = (row, name) => (name === "gap" ? (row.reference_log_prob === null || row.output_log_prob === null ? null : row.reference_log_prob - row.output_log_prob) : row[name]);
  const cell = (row, [name, , digits]) => { const found = value(row, name); return found === null || found === undefined ? "–" : digits === "share" ? formatPercent(found) : digits === "yes" ? (found ? "yes" : "no") : formatNumber(found, digits); };

  function put() {
    bar.value = rows.length;
    bar.hidden = rows.length >= corpus.size;
    status.textContent = `${corpus.name}: ${formatNumber(rows.length, 0)} of ${formatNumber(corpus.size, 0)}`;
    button.textContent = kept.running ? "Stop" : rows.length ? "Go on" : "Translate it";
    button.hidden = readOnly || (rows.length >= corpus.size && !kept.running);
    const shown = columns();
    if (!shown.length) { table.replaceChildren(el("p", { class: "quiet" }, "Nothing is computed yet.")); return; }
    if (!shown.some(([name]) => name === kept.by)) [kept.by, , , kept.order] = shown[0];
    const words = kept.words.toLowerCase(), known = (row) => value(row, kept.by) ?? -Infinity;
    let chosen = rows.filter((row) => !words || `${row.source} ${row.output} ${row.reference}`.toLowerCase().includes(words));
    if (kept.which === "left") chosen = chosen.filter((row) => value(row, "gap") > 0);
    chosen = [...chosen].sort((a, b) => (kept.order === "rising" ? known(a) - known(b) : known(b) - known(a)) || a.number - b.number);
    if (kept.which === "wrong") chosen = chosen.slice(0, Math.ceil(chosen.length / 2));
    const heads = shown.map((column) => el("th", { scope: "col", class: "number", "aria-sort": column[0] === kept.by ? (kept.order === "rising" ? "ascending" : "descending") : null }, el("button", { type: "button", class: "sort", onclick: () => {
      kept.order = kept.by === column[0] ? (kept.order === "rising" ? "falling" : "rising") : column[3];
      [kept.by] = column;
      put();
    } }, column[1])));
    table.replaceChildren(scroller("table of the corpus", el("table", { class: "corpus-table" }, el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "no."), el("th", { scope: "col" }, "source, output, reference"), heads)),
      el("tbody", {}, chosen.slice(0, MOST_SHOWN).map((row) => el("tr", {}, el("td", { class: "number" }, String(row.number + 1)),
        el("td", {}, el("button", { type: "button", class: "corpus-row", "aria-label": `open example ${row.number + 1}`, onclick: () => open(row) },
          el("span", { class: "quiet" }, row.source), el("span", {}, row.output ?? row.error ?? ""), el("span", { class: "reference" }, row.reference)),
        canExplain ? el("button", { type: "button", class: "small", onclick: () => { detail.replaceChildren(el("h2", {}, `What the reference of example ${row.number + 1} would have cost`)); explain(detail, row); detail.scrollIntoView(); } }, "and the reference?") : null),
        shown.map((column) => el("td", { class: "number" }, cell(row, column)))))))),
    ...(chosen.length > MOST_SHOWN ? [el("p", { class: "quiet" }, `The first ${MOST_SHOWN} of ${formatNumber(chosen.length, 0)} are shown.`)] : []),
    ...("confidence_kind" in rows[0] ? [el("p", { class: "quiet" }, rows[0].confidence_kind === "calibrated" ? "Confidence is calibrated: the probability that the output is good." : "Confidence is the geometric mean of the probabilities of tokens; regard calibrate makes it a probability.")] : []));
  }
  put();
  if (!rows.length && !readOnly) run();
}
