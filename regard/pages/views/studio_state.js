// The state of the studio, which lives in the address of the page: a link opens what it was copied from.

const START = { texts: [""], prefix: [], changes: [], tab: "step", position: 0, beam: null, lengthPenalty: null, coverage: 0, method: "weights", whyMethod: "gradient", instead: "", against: "model", otherModel: "", otherText: "", otherStep: null, side: "decoder", sourcePosition: 0 };

/** The state of the address, of an exported page, or at the start. */
export function readState(data) {
  const found = { ...START, model: data.models[0]?.name, ...(data.state || {}) };
  found.texts = [...found.texts];
  if (!data.recording && location.hash.length > 1) {
    try {
      const given = JSON.parse(decodeURIComponent(location.hash.slice(1)));
      for (const [name, value] of Object.entries(given)) if (fits(name, value)) found[name] = value;
    } catch { /* an address that was cut off: the start is shown */ }
  }
  if (!data.models.some((model) => model.name === found.model)) found.model = data.models[0]?.name;
  return found;
}
const CHOICES = {
  tab: ["step", "beam", "look", "change", "why", "nearest", "compare", "corpus"], whyMethod: ["gradient", "integrated", "occlusion"], side: ["decoder", "encoder"],
  method: ["weights", "effective", "contributions", "gradient", "integrated", "occlusion", "lens", "direct"], against: ["model", "text", "step"],
};
function fits(name, value) {
  if (name in CHOICES) return CHOICES[name].includes(value);
  if (name === "position" || name === "sourcePosition") return Number.isInteger(value) && value >= 0;
  if (name === "model") return typeof value === "string";
  if (!(name in START)) return false;
  if (Array.isArray(START[name])) return Array.isArray(value) && value.every((one) => (name === "texts" ? typeof one === "string" : name === "prefix" ? Number.isInteger(one) : typeof one === "object"));
  return START[name] === null ? value === null || typeof value === "number" : typeof value === typeof START[name];
}
/** Put what differs from the start into the address. */
export function writeState(state) {
  const changed = { model: state.model };
  for (const name of Object.keys(START)) if (JSON.stringify(state[name]) !== JSON.stringify(START[name])) changed[name] = state[name];
  history.replaceState(null, "", `#${encodeURIComponent(JSON.stringify(changed))}`);
}
