// A demo inbox: suggestions are inserted into the reply for editing, and only the send button sends.
import { el } from "./kit.js";

/** Fill the page: `data` has `model`, `messages` (sender, subject, text) and `canLog`. */
export function show(data) {
  const root = document.getElementById("inbox");
  const state = { open: 0, shown: [], chosen: null, asked: 0 };
  const messages = data.messages.map((message) => ({ ...message, draft: "", sent: null }));

  const list = el("ul", { class: "messages", "aria-label": "Messages" });
  const reader = el("div", { class: "reader", "aria-live": "polite" });
  const suggestions = el("div", { class: "suggestions", role: "group", "aria-label": "Suggested replies" });
  const why = el("p", { class: "quiet why", role: "status" });
  const reply = el("textarea", { id: "reply", rows: 4, "aria-label": "Your reply", oninput: keepDraft });
  const send = el("button", { type: "button", id: "send", onclick: sendReply }, "Send");
  const always = el("input", { type: "checkbox", id: "always", checked: true, onchange: () => ask(messages[state.open]) });
  const learn = el("input", { type: "checkbox", id: "learn" });
  const other = el("textarea", { id: "own", rows: 2, placeholder: "Write a message of your own to try" });
  const add = el("button", { type: "button", id: "add", onclick: addMessage }, "Add to the inbox");

  root.append(
    el("div", { class: "inbox" },
      el("nav", { "aria-label": "Inbox" }, list, el("label", { class: "quiet", for: "own" }, "Try a message"), other, add),
      el("div", { class: "open" }, reader, suggestions, why, reply,
        el("div", { class: "foot" }, send),
        el("div", { class: "settings", role: "group", "aria-label": "Settings" },
          el("label", { class: "quiet" }, always, " Suggest for every message, not only where a short reply is likely"),
          data.canLog ? el("label", { class: "quiet" }, learn, " Learn from my choices (kept on this server)") : null))));

  function drawList() {
    list.replaceChildren(...messages.map((message, place) => el("li", {},
      el("button", { type: "button", "aria-current": place === state.open ? "true" : null, onclick: () => open(place) },
        el("b", {}, message.sender), el("span", {}, message.subject),
        message.sent === null ? null : el("span", { class: "tag" }, "answered")))));
  }

  function open(place) {
    state.open = place;
    const message = messages[place];
    drawList();
    reader.replaceChildren(el("h2", {}, message.own ? "Your message" : message.subject),
      ...(message.own ? [] : [el("p", { class: "quiet" }, `From ${message.sender}`)]),
      el("p", { class: "text", dir: "auto" }, message.text));
    if (message.sent !== null) reader.append(el("blockquote", { class: "sent" }, el("p", { class: "quiet" }, "You answered"), el("p", {}, message.sent)));
    reply.value = message.draft;
    send.disabled = !reply.value.trim();
    ask(message);
  }

  async function ask(message) {
    const number = ++state.asked;
    state.shown = [];
    state.chosen = null;
    suggestions.replaceChildren();
    why.textContent = "Looking for replies …";
    try {
      const answer = await post("/v1/reply", { messages: [message.text], model: data.model, rate: always.checked ? 1 : null });
      if (number !== state.asked) return;  // another message was opened meanwhile
      drawSuggestions(answer.outputs[0]);
    } catch (error) {
      if (number === state.asked) why.textContent = `No suggestions: ${error.message}`;
    }
  }

  function drawSuggestions(found) {
    state.shown = found.suggestions.map((one) => one.text);
    why.textContent = found.reason ? `No suggestions. ${found.reason}` : "";
    suggestions.replaceChildren(...found.suggestions.map((one) =>
      el("button", { type: "button", class: "suggestion", title: one.intent, onclick: () => insert(one.text) }, one.text)));
  }

  /** Put a suggestion into the reply, and go there: it is not sent. It replaces another that was not edited. */
  function insert(text) {
    const draft = reply.value.trim();
    reply.value = draft && draft !== state.chosen ? `${draft} ${text}` : text;
    state.chosen = text;
    keepDraft();
    reply.focus();
    reply.setSelectionRange(reply.value.length, reply.value.length);
  }

  function keepDraft() {
    messages[state.open].draft = reply.value;
    send.disabled = !reply.value.trim();
  }

  function sendReply() {
    const text = reply.value.trim();
    if (!text) return;
    const message = messages[state.open];
    Object.assign(message, { sent: text, draft: "" });
    if (learn.checked && state.shown.length) {
      post("/v1/reply/choice", { model: data.model, shown: state.shown, chosen: state.chosen, sent: text })
        .catch((error) => { why.textContent = `The choice was not kept: ${error.message}`; });
    }
    open(state.open);
  }

  function addMessage() {
    const text = other.value.trim();
    if (!text) return;
    messages.unshift({ sender: "You", subject: text.split("\n")[0].slice(0, 40), text, own: true, draft: "", sent: null });
    other.value = "";
    open(0);
  }

  open(0);
  document.body.dataset.ready = "true";
}

async function post(path, body) {
  const response = await fetch(path, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });
  const answer = await response.json().catch(() => ({}));
  if (!response.ok) throw new Error(answer.error || `the server answered ${response.status}.`);
  return answer;
}
