// Pictures with their captions: where the model looked just before it wrote each word. Of a sound, the picture is its
// spectrogram, and places are seconds.
import { choice, controls, el, formatNumber, onTheme, roving, toggle, unpack } from "./kit.js";

const HEAT = [214, 64, 32], VEIL = [16, 20, 32];  // the veil is that of looks.py
const PICTURE = { large: 384, magnified: Infinity, small: 96, noun: "picture", verb: "looked" };
const SOUND = { large: 860, magnified: 1.5, small: 180, noun: "spectrogram", verb: "listened" };  // short sounds stay small
const STEPS = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600], MOST_TICKS = 12;

export function show(root, looks) {
  root.append(...looks.map((look) => showLook(look, looks.length > 1)));
}

/** The seconds below a spectrogram. */
function timeAxis(seconds) {
  const step = STEPS.find((each) => seconds / each <= MOST_TICKS) ?? seconds / MOST_TICKS;
  const ticks = Array.from({ length: Math.floor(seconds / step + 1e-6) + 1 }, (_, number) => {
    const tick = el("span", {}, `${Number((number * step).toFixed(2))}${number ? "" : " s"}`);
    tick.style.left = `${(100 * number * step) / seconds}%`;
    return tick;
  });
  return el("div", { class: "look-times quiet", "aria-hidden": "true" }, ticks);
}

function showLook(look, several) {
  const kind = look.seconds === null ? PICTURE : SOUND;
  const [rows, columns] = look.grid, layers = look.layers.map(({ layer, weights }) => ({ layer, weights: unpack(weights) }));
  const state = { layer: null, head: null, way: "light", smooth: true };
  let seen = null, locked = null;
  const picture = new Image();
  const large = el("canvas", { role: "img", class: "look-large" });
  const readout = el("p", { class: "look-readout", "aria-live": "polite" });
  const times = look.seconds === null ? "" : timeAxis(look.seconds);
  const placeName = (place) => (look.seconds === null ? `at row ${Math.floor(place / columns)}, column ${place % columns}`
    : `at ${((place * look.seconds) / columns).toFixed(2)} s`);
  const tiles = look.words.map((word, place) => {
    const canvas = el("canvas", { "aria-hidden": "true" });
    const made = el("button", { type: "button", class: "tile look-word", "aria-pressed": "false",
      onmouseenter: () => show(place), onmouseleave: () => show(null), onfocus: () => show(place), onblur: () => show(null),
      onclick: () => { locked = locked === place ? null : place; show(seen); },
      onkeydown: (event) => { if (event.key === "Escape") { locked = null; show(null); } } },
    layers.length ? canvas : "", el("span", {}, word));
    return { made, canvas };
  });
  roving(tiles.map(({ made }) => made));

  /** The weights of every word, over the layers and heads that were chosen: words of places. */
  function maps() {
    const chosen = layers.filter(({ layer }) => state.layer === null || layer === state.layer)
      .flatMap(({ weights }) => (state.head === null ? weights : [weights[state.head]]));
    return look.words.map((_, word) => Float32Array.from({ length: rows * columns },
      (_, place) => chosen.reduce((sum, head) => sum + head[word][place], 0) / chosen.length));
  }
  let values = layers.length ? maps() : [];

  function overlay(weights) {
    const top = Math.max(...weights) || 1, sheet = document.createElement("canvas");
    sheet.width = columns; sheet.height = rows;
    const pen = sheet.getContext("2d"), dots = pen.createImageData(columns, rows);
    weights.forEach((weight, place) => {
      const share = weight / top, heat = state.way === "heat";
      dots.data.set([...(heat ? HEAT : VEIL), 255 * (heat ? 0.85 * share ** 0.8 : 0.8 * (1 - share))], 4 * place);
    });
    pen.putImageData(dots, 0, 0);
    return sheet;
  }
  function paint(canvas, side, weights) {
    const ratio = window.devicePixelRatio || 1, scale = side / Math.max(picture.naturalWidth, picture.naturalHeight);
    const wide = Math.max(1, Math.round(picture.naturalWidth * scale)), high = Math.max(1, Math.round(picture.naturalHeight * scale));
    canvas.width = wide * ratio; canvas.height = high * ratio;
    canvas.style.aspectRatio = `${wide} / ${high}`; canvas.style.width = `${wide}px`;
    const pen = canvas.getContext("2d");
    pen.imageSmoothingEnabled = scale < 3;
    pen.drawImage(picture, 0, 0, canvas.width, canvas.height);
    if (!weights) return;
    pen.imageSmoothingEnabled = state.smooth;
    pen.imageSmoothingQuality = "high";
    pen.drawImage(overlay(weights), 0, 0, canvas.width, canvas.height);
  }
  function show(place) {
    seen = place;
    const at = seen ?? locked;
    tiles.forEach(({ made }, word) => { made.classList.toggle("picked", word === at); made.setAttribute("aria-pressed", String(word === locked)); });
    if (picture.complete && picture.naturalWidth) paint(large, Math.min(kind.large, kind.magnified * picture.naturalWidth), at === null || !layers.length ? null : values[at]);
    large.setAttribute("aria-label", at === null || !layers.length ? `the ${kind.noun} ${look.picture}` : `the ${kind.noun}, with where the model ${kind.verb} for ${look.words[at]}`);
    if (times) times.style.width = large.style.width;
    if (!layers.length) { readout.textContent = ""; return; }
    if (at === null) { readout.replaceChildren(el("span", { class: "quiet" }, `Nothing is chosen: the ${kind.noun} as it is.`)); return; }
    const order = [...values[at].keys()].sort((a, b) => values[at][b] - values[at][a]), best = order[0];
    let half = 0, count = 0;
    while (half < 0.5 && count < order.length) half += values[at][order[count++]];
    readout.replaceChildren(el("b", {}, look.words[at]), ` ${kind.verb} most ${placeName(best)} `,
      el("span", { class: "quiet" }, `(${formatNumber(values[at][best])}); half of its weight is on ${count} of ${rows * columns} places${locked === at && seen === null ? " (held)" : ""}`));
  }
  function repaint() {
    if (layers.length) { values = maps(); tiles.forEach(({ canvas }, word) => paint(canvas, kind.small, values[word])); }
    show(seen);
  }
  picture.addEventListener("load", repaint);
  picture.src = look.image;
  onTheme(large, repaint);

  const bar = [];
  if (layers.length) {
    const most = Math.max(...layers.map(({ weights }) => weights.length));
    bar.push(choice("Show", [["light", "light"], ["heat", "heat"]], state.way, (way) => { state.way = way; repaint(); }));
    if (layers.length > 1) bar.push(choice("Layer", [[null, "mean"], ...layers.map(({ layer }) => [layer, String(layer)])], null, (layer) => {
      state.layer = layer;
      if (layer === null) { state.head = null; heads.choose(null); }
      repaint();
    }));
    const heads = choice("Head", [[null, "mean"], ...Array.from({ length: most }, (_, head) => [head, String(head)])], null, (head) => { state.head = head; repaint(); });
    if (most > 1 && layers.every(({ weights }) => weights.length === most)) bar.push(heads);
    bar.push(toggle("smooth", true, (smooth) => { state.smooth = smooth; repaint(); }));
  }
  const others = look.others.length ? el("ul", { class: "quiet" }, look.others.map(({ text, score }) => el("li", {}, `${text}  ${formatNumber(score)}`))) : "";
  return el("article", { class: "look" },
    el("h2", { class: "look-caption" }, look.caption), el("p", { class: "quiet look-name" }, look.picture),
    bar.length ? controls(...bar) : "",
    el("div", { class: "look-pair" }, el("div", {}, large, times, readout), el("div", {}, el("div", { class: "look-words", role: "group", "aria-label": `where it ${kind.verb}, one after the other` }, tiles.map(({ made }) => made)), others)));
}
