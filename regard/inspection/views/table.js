// A plain table: column names and rows.
import { formatNumber, table } from "./kit.js";

export function show(root, data) {
  const show = (value) => (typeof value === "number" ? formatNumber(value) : value);
  root.append(table(data.head, data.rows, { show }));
}
