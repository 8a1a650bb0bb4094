// How much of each input token is in each hidden state, layer by layer.
view("mixing", (root, data) => {
  const layers = unpack(data.contributions), names = layers.map((_, place) => (place ? String(place - 1) : "embedding"));
  let layer = layers.length - 1;
  const said = el("p", { "aria-live": "polite" });
  const map = heatmap({ rows: data.tokens, columns: data.tokens, values: layers[layer], label: "contributions of input tokens (across) to hidden states (down)",
    hover: (r, c) => `${data.tokens[c]} in the state of ${data.tokens[r]}: ${say(100 * layers[layer][r][c], 1)} %` });
  function show() {
    said.textContent = `A token contributes ${say(100 * data.own[layer], 1)} % to its own state (median), and ${say(100 * data.main[layer], 0)} % of the tokens `
      + `are still their own greatest contributor. Standard error of the least certain cell: ${say(100 * data.error[layer], 2)} points (mean ${say(100 * data.meanError[layer], 2)}).`;
  }
  show();
  root.append(controls(choice("layer", names.map((name, place) => [place, name]), layer, (value) => { layer = value; map.update(layers[layer]); show(); })),
    said, map.element, scale(1),
    curves({ names, low: 0, high: 100, label: "by layer, %", series: [
      { name: "own contribution (median)", values: data.own.map((value) => 100 * value) },
      { name: "tokens that still contribute most", values: data.main.map((value) => 100 * value) },
    ] }));
});
