"""A form as a web page: works without a network, keeps answers in the browser, saves them as JSON."""

from regard.evaluation.form import LETTERS, Form
from regard.evaluation.page import page

TITLE = "Which translation is better?"

BODY = """
<h1>Which translation is better?</h1>
<p>For each text, say of every candidate whether it is <b>adequate</b> (it says what the source says) and whether it is
<b>fluent</b> (it reads well by itself), and then which is better. Your answers stay in this browser until you save them
to a file; you can stop and come back.</p>
<noscript><p><b>This form needs JavaScript. Ask for the CSV form instead.</b></p></noscript>
<p><label>Your name: <input id="judge" autocomplete="off"></label></p>
<div id="items"></div>
<div id="foot"><span id="done"></span><span><button id="next" type="button">Next open one</button>
<button id="save" type="button">Save answers</button></span><span id="said" class="quiet" role="status"></span></div>
"""

STYLE = """
body { max-width: 52rem; }
#judge { font: inherit; padding: .35rem .6rem; border: 1px solid var(--line); border-radius: .4rem; color: inherit;
  background: var(--tint); max-width: 100%; }
#judge.wanted { border-color: var(--accent); outline: 2px solid var(--accent); }
.said { font-size: 1.05rem; }
fieldset { border: 0; padding: 0; margin: .4rem 0; display: flex; flex-wrap: wrap; gap: .4rem; align-items: center; }
legend { float: left; padding: 0; color: var(--quiet); min-width: 5.5rem; }
.verdict { border-top: 1px solid var(--line); padding-top: .7rem; margin-top: .9rem; }
.verdict legend { color: inherit; font-weight: 600; min-width: 9rem; }
fieldset label { border: 1px solid var(--line); border-radius: 2rem; padding: .25rem .9rem .25rem .6rem;
  cursor: pointer; user-select: none; }
fieldset label:hover { background: var(--tint); }
fieldset label:has(:checked) { background: var(--tint); border-color: var(--accent); font-weight: 600; }
fieldset label:has(:focus-visible) { outline: 2px solid var(--accent); outline-offset: 1px; }
input[type=radio] { accent-color: var(--accent); }
.candidate { border-left: 3px solid var(--line); padding-left: .9rem; margin: 1rem 0; }
.answered { border-color: var(--accent); }
#foot { position: sticky; bottom: 0; background: var(--paper); padding: .7rem 0; border-top: 1px solid var(--line);
  display: flex; gap: .4rem 1rem; flex-wrap: wrap; justify-content: space-between; align-items: center; }
#save { background: var(--accent); color: var(--paper); border-color: var(--accent); cursor: pointer; }
#next { cursor: pointer; } #said { flex-basis: 100%; } #said:empty { display: none; }
"""

SCRIPT = """
const place = 'regard-judge-' + DATA.form;
let state = {judge: '', answers: {}};
try { state = JSON.parse(localStorage.getItem(place)) || state; } catch (error) { /* a browser that keeps nothing */ }
const judge = document.getElementById('judge'), list = document.getElementById('items');
const cards = new Map();

function keep() {
  try { localStorage.setItem(place, JSON.stringify(state)); } catch (error) { /* the file is still there to save */ }
  let done = 0;
  for (const item of DATA.items) {
    const full = complete(item);
    done += full;
    cards.get(item.id).classList.toggle('answered', full);
  }
  document.getElementById('done').textContent = done + ' of ' + DATA.items.length + ' done';
  document.getElementById('next').hidden = done === DATA.items.length;
}

function answer(item) {
  return state.answers[item.id] ||= {adequate: item.candidates.map(() => null), fluent: item.candidates.map(() => null),
    better: null};
}

function complete(item) {
  const given = state.answers[item.id];
  return Boolean(given) && [...given.adequate, ...given.fluent].every(one => one !== null)
    && (item.candidates.length < 2 || given.better !== null);
}

function element(tag, text, kind) {
  const made = document.createElement(tag);
  if (text !== undefined) made.textContent = text;
  if (kind) made.className = kind;
  return made;
}

function spoken(text) {
  const made = element('div', text || '(empty)', 'said');
  made.dir = 'auto';
  return made;
}

function question(title, name, options, current, choose) {
  const set = element('fieldset');
  set.append(element('legend', title));
  for (const [label, value] of options) {
    const shell = element('label'), button = element('input');
    button.type = 'radio';
    button.name = name;
    button.checked = current === value;
    button.onchange = () => { choose(value); keep(); };
    shell.append(button, ' ' + label);
    set.append(shell);
  }
  return set;
}

for (const item of DATA.items) {
  const card = element('div', undefined, 'card'), given = state.answers[item.id];
  card.append(element('div', 'source \\u00b7 ' + item.id + ' of ' + DATA.items.length, 'who'), spoken(item.source));
  if (item.reference !== null) card.append(element('div', 'a right translation', 'who'), spoken(item.reference));
  item.candidates.forEach((text, at) => {
    const box = element('div', undefined, 'candidate');
    box.append(element('div', DATA.letters[at], 'who'), spoken(text));
    for (const aspect of ['adequate', 'fluent']) {
      box.append(question(aspect + '?', [item.id, aspect, at].join('-'), [['yes', true], ['no', false]],
        given ? given[aspect][at] : null, value => { answer(item)[aspect][at] = value; }));
    }
    card.append(box);
  });
  if (item.candidates.length > 1) {
    const options = item.candidates.map((_, at) => [DATA.letters[at], at]);
    const verdict = question('Which is better?', item.id + '-better', [...options, ['equal', 'equal']],
      given ? given.better : null, value => { answer(item).better = value; });
    verdict.className = 'verdict';
    card.append(verdict);
  }
  cards.set(item.id, card);
  list.append(card);
}
judge.value = state.judge;
judge.oninput = () => {
  state.judge = judge.value;
  judge.className = document.getElementById('said').textContent = '';
  keep();
};
document.getElementById('next').onclick = () => {
  const open = DATA.items.find(item => !complete(item));
  if (open) cards.get(open.id).scrollIntoView({block: 'start'});
};
document.getElementById('save').onclick = () => {
  const said = document.getElementById('said');
  if (!state.judge.trim()) {
    said.textContent = 'Please write your name at the top first: answers are kept apart by it.';
    judge.className = 'wanted';
    judge.focus();
    return;
  }
  const answered = DATA.items.filter(item => state.answers[item.id]);
  const answers = answered.map(item => ({item: item.id, ...state.answers[item.id]}));
  const content = JSON.stringify({form: DATA.form, judge: state.judge.trim(), answers}, null, 1);
  const link = element('a');
  link.href = URL.createObjectURL(new Blob([content], {type: 'application/json'}));
  link.download = 'answers-' + state.judge.trim().replace(/[^\\p{L}\\p{N}]+/gu, '-') + '.json';
  document.body.append(link);
  link.click();
  link.remove();
  said.textContent = 'Saved as ' + link.download + ', with ' + answered.length + ' of ' + DATA.items.length
    + ' texts. Send that file back.';
};
keep();
"""


def render(form: Form) -> str:
    """The page of a form."""
    return page(TITLE, BODY, style=STYLE, script=SCRIPT, data={**form.facts(), "letters": LETTERS})
