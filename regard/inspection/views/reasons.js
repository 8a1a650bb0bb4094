// A text and the model's answer: the words that support the picked answer, and those that oppose it.
import { choice, controls, el, formatNumber, hint, inkOn, onTheme, roving, shader } from "./kit.js";
import { key } from "./heatmap.js";

export function show(root, data) {
  const state = { question: 0, method: 0, level: "words", picked: 0 };
  const question = () => data.questions[state.question], method = () => question().methods[state.method];
  const names = () => (state.level === "words" ? data.read.words : data.read.tokens);
  const rows = () => method()[state.level];
  const amount = (value) => `${value > 0 ? "+" : ""}${formatNumber(value, 3)} ${data.unit}`;
  /** Where on the text an answer stands: a tagged word, a blank. */
  const own = (answer) => (data.places === null ? -1 : state.level === "words" ? data.read.wordOf[data.places[answer]] : data.places[answer]);

  const text = el("div", { class: "tokens reasons-text" }), readout = el("div", { class: "reasons-readout" }), answers = el("div", { class: "tokens" });
  const chart = el("div"), note = el("p", { class: "quiet" }), keyPlace = el("div");
  const chosen = data.answers.map((name, index) => el("button", { type: "button", class: "token output", "aria-pressed": "false", onclick: () => { state.picked = index; draw(); } }, name));
  roving(chosen);
  answers.append(...chosen);

  function draw() {
    const row = rows()[state.picked], top = Math.max(...row.map(Math.abs)) || 1, shadeOf = shader(true);
    chosen.forEach((button, index) => { button.setAttribute("aria-pressed", String(index === state.picked)); button.classList.toggle("picked", index === state.picked); });
    text.replaceChildren(...names().map((name, index) => {
      const share = row[index] / top;
      return el("span", { class: `token${index === own(state.picked) ? " picked" : ""}`, style: row[index] ? `background:${shadeOf(share)};color:${inkOn(shadeOf(share))}` : "",
        onmousemove: (event) => hint(`${name}: ${amount(row[index])}`, event), onmouseleave: () => hint(null) }, name);
    }));
    showReadout(row);
    bars(row, top);
    note.textContent = method().note;
    keyPlace.replaceChildren(key({ top, signed: true, unit: data.unit }));
  }
  function showReadout(row) {
    const total = row.reduce((sum, value) => sum + value, 0), asked = question();
    const likely = data.likeliest[state.picked] || [];
    const gap = asked.gaps === null || method().name !== "integrated gradients" ? "" : ` (all words together: ${amount(asked.explained[state.picked])})`;
    readout.replaceChildren(
      el("div", {}, el("b", {}, data.answers[state.picked]), asked.others ? ` and not ${asked.others[state.picked]}` : "", `: the words come to ${amount(total)}${gap}.`),
      el("div", { class: "might" }, likely.map(([name, chance]) => el("span", { class: `given${name === data.answers[state.picked] ? " own" : ""}` },
        el("i", { style: `width:${4 * chance}rem` }), `${name} ${formatNumber(100 * chance, 1)} %`))));
  }
  /** The strongest words as bars, those for it to the right. */
  function bars(row, top) {
    const order = row.map((value, index) => [value, index]).filter(([value]) => value).sort((a, b) => Math.abs(b[0]) - Math.abs(a[0])).slice(0, 12);
    chart.replaceChildren(el("div", { class: "reasons-bars" }, order.flatMap(([value, index]) => [
      el("span", { class: "name" }, names()[index]),
      el("span", { class: "bar" }, el("i", { style: `width:${50 * Math.abs(value) / top}%;${value > 0 ? "left:50%" : "right:50%"};background:var(${value > 0 ? "--cell-plus" : "--cell-minus"})` })),
      el("span", { class: "amount" }, amount(value))])));
  }
  const parts = [];
  if (data.questions.length > 1) parts.push(choice("Question", data.questions.map((asked, index) => [index, asked.name]), 0, (value) => { state.question = value; draw(); }));
  if (question().methods.length > 1) parts.push(choice("Method", question().methods.map((method, index) => [index, method.name]), 0, (value) => { state.method = value; draw(); }));
  parts.push(choice("By", [["words", "word"], ["tokens", "token"]], state.level, (value) => { state.level = value; draw(); }));
  root.append(controls(...parts), el("div", { class: "reasons-pane" }, el("div", { class: "quiet" }, "input"), text, el("div", { class: "quiet" }, "answer"), answers), keyPlace, readout, chart, note);
  onTheme(root, draw);
  draw();
}
