// A test set as a table: sort by the worst, filter, and open a row in the other views.
import { el } from "./kit.js";

export function show(root, { corpora }) {
  if (!corpora.length) root.append(el("p", { class: "quiet" }, "Start the studio with a corpus to see its outputs here: regard studio RUN --corpus test.en test.de"));
}
