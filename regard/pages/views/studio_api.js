// Calls of the server that the studio comes from. Answers are kept, so that what was computed once is shown at once, and an
// exported page is the same studio with the answers that it was exported with.

/** An error that the reader can do something about. */
export class Refused extends Error {}

export function makeApi(recording, onConnection = () => {}) {
  const kept = new Map(Object.entries(recording || {}));
  const running = new Map();

  /** The response to a request; waits while the server is away or busy. */
  async function send(path, body, signal) {
    for (;;) {
      try {
        const answer = await fetch(path, {
          method: body === undefined ? "GET" : "POST", signal,
          headers: body === undefined ? {} : { "Content-Type": "application/json" },
          body: body === undefined ? undefined : JSON.stringify(body),
        });
        if (answer.ok) return answer;
        if (answer.status !== 503) throw new Refused((await answer.json().catch(() => ({}))).error || `The server answered with ${answer.status}.`);
        await pause(1000 * (Number(answer.headers.get("Retry-After")) || 1), signal);  // busy, or starting again
      } catch (error) {
        if (error.name === "AbortError" || error instanceof Refused) throw error;
        onConnection(false);
        await connected(signal);
        onConnection(true);
      }
    }
  }
  const fetchJson = async (path, body, signal) => (await send(path, body, signal)).json();
  /** Wait until the server answers again. */
  async function connected(signal) {
    for (;;) {
      await pause(1500, signal);
      try { if ((await fetch("/health/live", { signal })).ok) return; } catch (error) { if (error.name === "AbortError") throw error; }
    }
  }
  /** The answer to a request that may take long; `progress(task, done, count)` is called as it goes on. */
  async function follow(path, body, { signal, progress }) {
    const key = keyOf(path, body);
    if (kept.has(key) || recording) return ask(path, body, { signal });
    const answer = await send(path, { ...body, stream: true }, signal);
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    let text = "";
    for (;;) {
      const { done, value } = await reader.read();
      if (done) throw new Refused("The server stopped before the answer was complete. Try again.");
      text += value;
      for (let end = text.indexOf("\n\n"); end >= 0; end = text.indexOf("\n\n")) {
        const [kind, content] = text.slice(0, end).split("\n").map((line) => line.slice(line.indexOf(":") + 2));
        text = text.slice(end + 2);
        const data = JSON.parse(content);
        if (kind === "progress") progress(...data);
        else if (kind === "error") throw new Refused(data.error);
        else { kept.set(key, data); return data; }
      }
    }
  }
  /** The answer to a request; of two equal requests at once only one is sent. */
  async function ask(path, body, { signal } = {}) {
    const key = keyOf(path, body);
    if (kept.has(key)) return kept.get(key);
    if (recording) throw new Refused("This page was exported and computes nothing. Open it in the studio to go on from here.");
    if (!running.has(key) || signal) {
      const work = fetchJson(path, body, signal).then((data) => { kept.set(key, data); return data; });
      running.set(key, work);
      work.catch(() => {}).finally(() => { if (running.get(key) === work) running.delete(key); });
    }
    return running.get(key);
  }
  return {
    readOnly: Boolean(recording),
    has: (path, body) => kept.has(keyOf(path, body)),
    describe: (model) => ask(`/v1/models/${encodeURIComponent(model)}`),
    watch: (body, options) => ask("/v1/watch", body, options).then((found) => found.outputs[0]),
    inspect: (analysis, body, options) => follow(`/v1/inspect/${analysis}`, { ...body, panels: true }, options).then((found) => found.outputs[0]),
    knows: (analysis, body) => kept.has(keyOf(`/v1/inspect/${analysis}`, { ...body, panels: true })),
    ask,
    recording: () => Object.fromEntries(kept),
  };
}
function keyOf(path, body) {
  if (body === undefined) return path;
  const { file, ...rest } = body;
  return `${path} ${canonical(file ? { ...rest, file: `${file.length} ${file.slice(-48)}` } : rest)}`;
}
/** JSON with sorted keys and without white space, as Python's `request_key` writes it. */
function canonical(value) {
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`;
  if (value === null || typeof value !== "object") return JSON.stringify(value);
  return `{${Object.keys(value).filter((name) => value[name] !== undefined).sort().map((name) => `${JSON.stringify(name)}:${canonical(value[name])}`).join(",")}}`;
}
function pause(milliseconds, signal) {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, milliseconds);
    signal?.addEventListener("abort", () => { clearTimeout(timer); reject(new DOMException("cancelled", "AbortError")); });
  });
}
