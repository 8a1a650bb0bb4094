// A table whose cells were formatted in Python: shown as they are, sorted by their values.
view("formatted_table", (root, data) => {
  const texts = data.head.map((_, place) => new Map(data.rows.map((row, number) => [row[place], data.texts[number][place]])));
  root.append(table(data.head, data.rows, { show: (value, place) => texts[place].get(value) }));
});
