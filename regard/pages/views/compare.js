// The sentences of a comparison: order, search, and whether missing words are shown.

/** Connect the controls of the page. */
export function show(root) {
  const [list, order, find, count, missing] = ["sentences", "order", "find", "count", "missing"].map((id) => document.getElementById(id));
  const cards = [...list.children];
  const keys = { gain: (card) => -card.dataset.gain, loss: (card) => +card.dataset.gain, line: (card) => +card.dataset.line, worst: (card) => +card.dataset.score };
  order.onchange = () => { const key = keys[order.value]; cards.sort((a, b) => key(a) - key(b)); list.append(...cards); };
  find.oninput = () => {
    const wanted = find.value.toLowerCase();
    let shown = 0;
    for (const card of cards) {
      card.hidden = !card.textContent.toLowerCase().includes(wanted);
      shown += !card.hidden;
    }
    count.textContent = wanted ? `${shown} shown` : "";
  };
  missing.onchange = () => root.classList.toggle("without-missing", !missing.checked);
}
