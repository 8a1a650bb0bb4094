// Changes inside the model: heads switched off or scaled, attention directed or frozen, activations replaced, positions removed.
import { el, formatNumber, scroller } from "./kit.js";
import { differenceLine } from "./words.js";

const KINDS = { source: "to the source", encoder: "inside the source", decoder: "inside the output", between: "between the texts", picture: "to the picture", places: "inside the picture" };

/** A change in words. */
export function describeChange(change, watched) {
  const head = change.head === null || change.head === undefined ? "all heads" : `head ${change.head}`;
  const source = (place) => watched?.source.tokens[place] ?? place, target = (place) => watched?.target.tokens[place] ?? place;
  const isEncoder = (change.attention || change.tap || "").startsWith("encoder");
  switch (change.kind) {
    case "scale-head": return `${change.attention}, ${head}: ${change.by === 0 ? "off" : `times ${formatNumber(change.by)}`}`;
    case "attend": return `${change.attention || "all attention to the source"}, ${head}: “${isEncoder ? source(change.position) : target(change.position)}” looks only at “${source(change.to)}”`;
    case "freeze": return `${change.attention}, ${head}: looks where the unchanged model looked`;
    case "overwrite": return `${change.tap} at “${isEncoder ? source(change.position) : target(change.position)}”: as in “${change.source}”`;
    default: return `no positions in the ${change.end || "encoder and the decoder"}`;
  }
}
/** The Python that does the same. */
export function python(run, request, changes) {
  const names = { "scale-head": "ScaleHead", attend: "Attend", freeze: "Freeze", overwrite: "Overwrite", "remove-positions": "RemovePositions" };
  const value = (given) => (given === null ? "None" : typeof given === "string" ? JSON.stringify(given) : String(given));
  const lines = changes.map((change) => {
    const { kind, ...fields } = change;
    const given = Object.entries(fields).filter(([, one]) => one !== null && one !== undefined).map(([name, one]) => `${name}=${value(one)}`);
    return `    ${names[kind]}(${given.join(", ")}),`;
  });
  const used = [...new Set(changes.map((change) => names[change.kind]))].sort();
  const input = Array.isArray(request.input) ? `(${request.input.map(value).join(", ")})` : value(request.input);
  const more = Object.entries({ prefix: request.prefix?.length ? `[${request.prefix.join(", ")}]` : null, beam: request.beam, length_penalty: request.length_penalty, coverage_penalty: request.coverage_penalty || null })
    .filter(([, one]) => one !== null && one !== undefined).map(([name, one]) => `, ${name}=${one}`).join("");
  return ["import regard", ...(used.length ? [`from regard.inspection.changes import ${used.join(", ")}`] : []), "",
    `model = regard.load(${value(run)})`, ...(lines.length ? ["changes = [", ...lines, "]"] : []),
    `print(model.watch(${input}${lines.length ? ", changes=changes" : ""}${more}))`, ""].join("\n");
}

/**
 * The pane: `about` describes the model, `watched` is its output with the changes, `unchanged` without them.
 * `set(changes)` applies other changes.
 */
export function show(root, { about, watched, unchanged, changes, request, set }) {
  const heads = about.attentions, list = el("ol", { class: "change-list" });
  const add = (change) => set([...changes, change]);
  const remove = (place) => set(changes.filter((_, one) => one !== place));
  list.append(...changes.map((change, place) => el("li", {}, describeChange(change, unchanged || watched), " ", el("button", { type: "button", class: "small", onclick: () => remove(place) }, "Undo"))));
  const code = python(about.run, request, changes);
  root.append(
    el("div", { class: "card changed-outputs" },
      el("div", { class: "who" }, "unchanged"), el("p", { class: "unchanged" }, unchanged ? unchanged.text : watched.text),
      el("div", { class: "who" }, "changed"), el("p", { class: "changed" }, changes.length && unchanged ? differenceLine(unchanged.text, watched.text) : el("span", { class: "quiet" }, "Nothing is changed yet."))),
    changes.length ? el("div", {}, list, el("button", { type: "button", onclick: () => set([]) }, "Undo all changes")) : el("span"));

  // --- heads ---
  const factor = el("input", { type: "number", step: 0.25, min: -10, max: 10, value: 0, "aria-label": "factor of a head" });
  const scaled = (name, head) => changes.findIndex((change) => change.kind === "scale-head" && change.attention === name && change.head === head);
  if (heads.length) {
    const widest = Math.max(...heads.map((one) => one.heads));
    root.append(el("h3", {}, "Heads"), el("p", { class: "quiet" }, "A click multiplies what a head finds by ", factor, " (0 switches it off); a second click undoes it."),
      el("div", { class: "scroll" }, el("table", { class: "head-table" }, el("tbody", {}, heads.map((one) => el("tr", {},
        el("th", { scope: "row" }, `${KINDS[one.kind] || one.kind}, layer ${one.layer}`),
        Array.from({ length: widest }, (_, head) => el("td", {}, head < one.heads ? el("button", {
          type: "button", class: "head-switch", "aria-pressed": String(scaled(one.name, head) >= 0), title: `${one.name}, head ${head}`, "aria-label": `${one.name}, head ${head}`,
          onclick: () => (scaled(one.name, head) >= 0 ? remove(scaled(one.name, head)) : add({ kind: "scale-head", attention: one.name, head, by: Number(factor.value) || 0 })),
        }, scaled(one.name, head) >= 0 ? `×${formatNumber(changes[scaled(one.name, head)].by, 1)}` : String(head)) : null))))))));
  }

  // --- attention, activations, positions ---
  const select = (label, options) => { const made = el("select", { "aria-label": label }, options.map(([value, text]) => el("option", { value: String(value) }, text))); return made; };
  const number = (made) => (made.value === "" ? null : Number(made.value));
  const tokens = (side) => side.tokens.map((token, place) => [place, `${place}: ${token}`]);
  const attentionNames = heads.map((one) => [one.name, one.name]);
  const headOptions = [["", "all heads"], ...Array.from({ length: Math.max(0, ...heads.map((one) => one.heads)) }, (_, head) => [head, `head ${head}`])];
  const rows = [];
  const toSource = heads.some((one) => one.kind === "source") && about.writes;
  if (toSource) {
    const from = select("output token", tokens(watched.target)), to = select("source token", tokens(watched.source));
    const which = select("attention", [["", "all attention to the source"], ...attentionNames.filter(([name]) => heads.find((one) => one.name === name).kind === "source")]), head = select("head", headOptions);
    rows.push(["Direct attention", [from, " looks only at ", to, " by ", which, head], () => add({ kind: "attend", position: number(from), to: number(to), attention: which.value || null, head: number(head) })]);
  }
  if (heads.length) {
    const which = select("frozen attention", attentionNames), head = select("frozen head", headOptions);
    rows.push(["Freeze a pattern", [which, head], () => add({ kind: "freeze", attention: which.value, head: number(head) })]);
  }
  if (about.reads === "text" && about.taps.length) {
    const tap = select("activation", about.taps.map((name) => [name, name])), position = el("input", { type: "number", min: 0, value: 1, "aria-label": "position" });
    const states = about.taps.filter((name) => name.startsWith("encoder") && name.endsWith("states"));
    if (states.length) tap.value = states.at(-1);
    const other = el("input", { type: "text", placeholder: "another sentence", "aria-label": "another sentence" });
    rows.push(["Overwrite an activation", [tap, " at position ", position, " with that of ", other], () => {
      if (other.value.trim()) add({ kind: "overwrite", tap: tap.value, position: number(position), source: other.value, source_position: null }); else other.focus();
    }]);
  }
  if (about.positions.length) {
    const end = select("end", [...(about.positions.length > 1 ? [["", "encoder and decoder"]] : []), ...about.positions.map((name) => [name, name])]);
    rows.push(["Remove positions", [end], () => add({ kind: "remove-positions", end: end.value || null })]);
  }
  root.append(...rows.map(([name, parts, apply]) => el("div", { class: "change-row" }, el("h3", {}, name), el("div", { class: "change-parts" }, parts, el("button", { type: "button", onclick: apply }, "Apply")))));
  root.append(el("h3", {}, "The same in Python"), scroller("Python", el("pre", { class: "python" }, code)), el("button", { type: "button", onclick: (event) => {
    navigator.clipboard?.writeText(code); event.currentTarget.textContent = "Copied";
  } }, "Copy"));
}
