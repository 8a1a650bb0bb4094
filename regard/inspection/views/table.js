// A plain table: column names and rows.
view("table", (root, data) => {
  const show = (value) => (typeof value === "number" ? say(value) : value);
  root.append(table(data.head, data.rows, { show }));
});
