// Attention as a map; the layer and the head can be chosen.
view("attention", (root, data) => {
  const kinds = [...new Set(data.attention.map((one) => one.kind))];
  const shown = kinds.includes("source") ? "source" : kinds[0];
  const heads = data.attention.filter((one) => one.kind === shown).flatMap((one) => one.weights);
  const mean = heads[0].map((row, r) => row.map((_, c) => heads.reduce((sum, head) => sum + head[r][c], 0) / heads.length));
  const [rows, columns] = { source: ["target", "source"], encoder: ["source", "source"], decoder: ["inputs", "inputs"] }[shown];
  root.append(heatmap({ rows: data[rows].tokens, columns: data[columns].tokens, values: mean }).element);
});
