// A table whose cells were formatted in Python: sorted by value, shown as the same text everywhere.
import { table } from "./kit.js";

export function show(root, data) {
  const texts = data.head.map((_, place) => new Map(data.rows.map((row, number) => [row[place], data.texts[number][place]])));
  root.append(table(data.head, data.rows, { show: (value, place) => texts[place].get(value) }));
}
