// A form for judges: candidates without names, answers kept in this browser until they are saved to a file.

/** Fill the form. The page has a field `judge`, a place `items`, and a foot with `done`, `next`, `save` and `message`. */
export function show(form) {
  const key = `regard-judge-${form.form}`;
  let state = { judge: "", answers: {} };
  try { state = JSON.parse(localStorage.getItem(key)) || state; } catch (error) { /* a browser that stores nothing */ }
  const [judge, list, done, next, save, message] = ["judge", "items", "done", "next", "save", "message"].map((id) => document.getElementById(id));
  const cards = new Map();

  function keep() {
    try { localStorage.setItem(key, JSON.stringify(state)); } catch (error) { /* the file can still be saved */ }
    let count = 0;
    for (const item of form.items) {
      const full = isComplete(item);
      count += full;
      cards.get(item.id).classList.toggle("answered", full);
    }
    done.textContent = `${count} of ${form.items.length} done`;
    next.hidden = count === form.items.length;
  }
  function answerOf(item) {
    return state.answers[item.id] ||= { adequate: item.candidates.map(() => null), fluent: item.candidates.map(() => null), better: null };
  }
  function isComplete(item) {
    const given = state.answers[item.id];
    return Boolean(given) && [...given.adequate, ...given.fluent].every((one) => one !== null) && (item.candidates.length < 2 || given.better !== null);
  }
  function element(tag, text, kind) {
    const made = document.createElement(tag);
    if (text !== undefined) made.textContent = text;
    if (kind) made.className = kind;
    return made;
  }
  function paragraph(text) {
    const made = element("div", text || "(empty)", "candidate-text");
    made.dir = "auto";
    return made;
  }
  function question(title, name, options, current, choose) {
    const set = element("fieldset");
    set.append(element("legend", title));
    for (const [label, value] of options) {
      const shell = element("label"), button = element("input");
      button.type = "radio";
      button.name = name;
      button.checked = current === value;
      button.onchange = () => { choose(value); keep(); };
      shell.append(button, ` ${label}`);
      set.append(shell);
    }
    return set;
  }
  for (const item of form.items) {
    const card = element("div", undefined, "card"), given = state.answers[item.id];
    card.append(element("div", `source \u00b7 ${item.id} of ${form.items.length}`, "who"), paragraph(item.source));
    if (item.reference !== null) card.append(element("div", "reference translation", "who"), paragraph(item.reference));
    item.candidates.forEach((text, at) => {
      const box = element("div", undefined, "candidate");
      box.append(element("div", form.letters[at], "who"), paragraph(text));
      for (const aspect of ["adequate", "fluent"]) {
        box.append(question(`${aspect}?`, [item.id, aspect, at].join("-"), [["yes", true], ["no", false]],
          given ? given[aspect][at] : null, (value) => { answerOf(item)[aspect][at] = value; }));
      }
      card.append(box);
    });
    if (item.candidates.length > 1) {
      const options = item.candidates.map((_, at) => [form.letters[at], at]);
      const verdict = question("Which is better?", `${item.id}-better`, [...options, ["equal", "equal"]],
        given ? given.better : null, (value) => { answerOf(item).better = value; });
      verdict.className = "verdict";
      card.append(verdict);
    }
    cards.set(item.id, card);
    list.append(card);
  }
  judge.value = state.judge;
  judge.oninput = () => {
    state.judge = judge.value;
    judge.className = message.textContent = "";
    keep();
  };
  next.onclick = () => {
    const open = form.items.find((item) => !isComplete(item));
    if (open) cards.get(open.id).scrollIntoView({ block: "start" });
  };
  save.onclick = () => {
    if (!state.judge.trim()) {
      message.textContent = "Please write your name at the top first: answers are filed under it.";
      judge.className = "wanted";
      judge.focus();
      return;
    }
    const answered = form.items.filter((item) => state.answers[item.id]);
    const answers = answered.map((item) => ({ item: item.id, ...state.answers[item.id] }));
    const content = JSON.stringify({ form: form.form, judge: state.judge.trim(), answers }, null, 1);
    const link = element("a");
    link.href = URL.createObjectURL(new Blob([content], { type: "application/json" }));
    link.download = `answers-${state.judge.trim().replace(/[^\p{L}\p{N}]+/gu, "-")}.json`;
    document.body.append(link);
    link.click();
    link.remove();
    message.textContent = `Saved as ${link.download}, with ${answered.length} of ${form.items.length} texts. Send that file back.`;
  };
  keep();
}
