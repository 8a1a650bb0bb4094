// Decoding one token at a time: the distribution over the next token, where attention looks, and the growing output.
import { choice, controls, el, formatNumber, formatPercent, onTheme, scroller, shader, tint, unpack } from "./kit.js";
import { outputWords } from "./words.js";

const PACE = 900;  // milliseconds for each step of playing

/** data: what `Watched.to_json` says, with `looked` (target × source) if attention is shown. Returns {goTo(position)}. */
export function show(root, data, { at = 0, looked = null, moved = () => {} } = {}) {
  const count = data.target.tokens.length;
  let position = Math.min(at, count - 1), timer = null;
  const slider = el("input", { type: "range", min: 0, max: Math.max(count - 1, 0), value: position, "aria-label": "output position", oninput: () => go(Number(slider.value)) });
  const button = (label, text, onclick) => el("button", { type: "button", "aria-label": label, title: label, onclick }, text);
  const play = button("Play", "play", () => (timer ? stop() : start()));
  const where = el("span", { class: "quiet steps-where", role: "status" });
  const source = el("div", { class: "tokens steps-source" }), bars = el("div", { class: "steps-bars" }), growing = el("div", { class: "steps-growing" });
  const numbers = el("p", { class: "quiet steps-numbers" });
  const read = data.source.tokens.map((token) => el("span", { class: "token" }, token));
  source.append(...read);
  root.append(
    controls(el("span", { class: "choice", role: "group", "aria-label": "steps" }, el("span", { class: "buttons" },
      button("First token", "|◀", () => go(0)), button("Step back", "◀", () => go(position - 1)), play, button("Step forward", "▶", () => go(position + 1)), button("Last token", "▶|", () => go(count - 1)))), slider, where),
    el("div", { class: "steps-sides" },
      el("div", {}, data.source.tokens.length ? el("div", { class: "quiet" }, looked ? "source, tinted by where the model looks now" : "source") : null, scroller("source", source),
        el("div", { class: "quiet" }, "output so far"), growing),
      el("div", {}, el("div", { class: "quiet" }, "next token: the most probable"), bars, numbers)));
  root.addEventListener("keydown", (event) => {
    if (event.target !== root && event.target.tagName === "INPUT") return;
    if (event.key === " " && event.target === root) { event.preventDefault(); play.click(); }
  });

  function start() {
    if (position >= count - 1) go(0);
    play.textContent = "pause"; play.setAttribute("aria-label", "Pause");
    timer = setInterval(() => (position >= count - 1 ? stop() : go(position + 1, true)), PACE);
  }
  function stop() { clearInterval(timer); timer = null; play.textContent = "play"; play.setAttribute("aria-label", "Play"); }
  function go(next, playing = false) {
    if (!playing && timer) stop();
    position = Math.max(0, Math.min(count - 1, next));
    slider.value = position;
    draw();
    moved(position);
  }
  function draw() {
    const prediction = data.predictions[position], own = data.target.ids[position];
    where.textContent = `${position + 1} of ${count}`;
    const shade = shader(false, 0.55), row = looked?.[position];
    read.forEach((chip, place) => { tint(chip, row && row[place] >= 0.005 ? shade(row[place]) : null); chip.title = row ? `weight ${formatNumber(row[place], 3)}` : ""; });
    const before = { ...data, target: cut(data.target, position), predictions: data.predictions.slice(0, position) };
    growing.replaceChildren(position ? outputWords(before, { given: data.prefix + data.prompt }) : el("span", { class: "quiet" }, "(nothing yet)"));
    if (!prediction) { bars.replaceChildren(el("p", {}, data.text)); numbers.textContent = ""; return; }
    const shown = prediction.candidates.some((one) => one.id === own) ? prediction.candidates
      : [...prediction.candidates, { id: own, text: data.target.tokens[position], probability: prediction.probability }];
    bars.replaceChildren(...shown.map((one) => el("div", { class: `bar-row${one.id === own ? " own" : ""}` },
      el("span", { class: "bar-name" }, one.text.trim() || "␣"), el("span", { class: "bar-track" }, el("i", { style: `width:${Math.max(0.4, 100 * one.probability)}%` })),
      el("span", { class: "bar-number" }, formatPercent(one.probability)))));
    numbers.textContent = `The model wrote “${data.target.tokens[position]}”: rank ${prediction.rank}, log-probability ${formatNumber(Math.log(prediction.probability), 3)}; `
      + `entropy of the distribution ${formatNumber(prediction.entropy, 2)} nats.`
      + (data.ctc ? ` This is the decoder alone; search adds CTC with a weight of ${formatNumber(data.ctc)}.` : "");
  }
  onTheme(root, draw);
  draw();
  return { goTo: (next) => go(next), stop };
}
function cut(side, length) {
  const words = side.words.slice(0, length), most = words.length ? words[words.length - 1] + 1 : 0, texts = side.wordTexts.slice(0, most);
  if (most && side.words[length] === words[words.length - 1]) texts[most - 1] = side.tokens.filter((_, place) => place < length && side.words[place] === most - 1).join("");
  return { ...side, tokens: side.tokens.slice(0, length), ids: side.ids.slice(0, length), words, wordTexts: texts, special: side.special.slice(0, length) };
}
/** The mean attention to the source of all layers and heads, target × source, from the panels of `attention`; null without any. */
export function meanLook(panels) {
  const data = panels?.find((panel) => panel.view === "attention")?.data;
  const maps = (data?.attention || []).filter((one) => one.kind === "source").flatMap((one) => [...unpack(one.weights)]);
  if (!maps.length) return null;
  return maps[0].map((row, r) => Array.from(row, (_, c) => maps.reduce((sum, map) => sum + map[r][c], 0) / maps.length));
}
