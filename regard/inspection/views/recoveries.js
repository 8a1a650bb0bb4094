// Mean recoveries of patching over many pairs of sources, with their intervals.
import { el, formatNumber, heading, table } from "./kit.js";

export function show(root, data) {
  const range = (ends) => (ends ? `${formatNumber(ends[0])} to ${formatNumber(ends[1])}` : "–");
  const rows = (some) => some.map((mean) => [mean.name, mean.recovery, range(mean.recovery_95), mean.pairs]);
  const show = (value, place) => (place === 1 ? formatNumber(value) : place === 3 ? value.toLocaleString("en") : value);
  root.append(heading(root, {}, "Copied as a whole"), table(["part", "recovers", "95 %", "pairs"], rows(data.wholes), { show }));
  if (data.heads.length) root.append(heading(root, {}, "Single heads, at all positions"), table(["head", "recovers", "95 %", "pairs"], rows(data.heads), { show }));
  if (data.skipped.length) root.append(el("p", { class: "quiet" }, `${data.skipped.length} pairs could not be compared, such as ${data.skipped[0]}`));
}
