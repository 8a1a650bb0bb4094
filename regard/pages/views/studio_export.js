// A view as a file: its picture (SVG or PNG) and its numbers (JSON).
import { el } from "./kit.js";

/** Buttons that save what a root shows. */
export function saveView(root, numbers, name) {
  const button = (text, save) => el("button", { type: "button", class: "small", onclick: async (event) => {
    const pressed = event.currentTarget;
    try { await save(); document.body.dataset.saved = text; } catch (error) { pressed.textContent = `${text}: ${error.message}`; }
  } }, text);
  return el("div", { class: "save quiet" }, "Save this view: ",
    button("PNG", async () => download(await picture(root, "png"), `${name}.png`)), button("SVG", async () => download(await picture(root, "svg"), `${name}.svg`)),
    button("JSON", () => download(new Blob([JSON.stringify(numbers(), null, 1)], { type: "application/json" }), `${name}.json`)));
}
function download(blob, name) {
  const link = el("a", { href: URL.createObjectURL(blob), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
/** What an element looks like: a copy of it with all styles written out, inside an SVG; canvases become images. */
async function picture(root, kind) {
  const { width, height } = root.getBoundingClientRect(), copied = copy(root);
  const dark = getComputedStyle(document.body).backgroundColor;
  const text = new XMLSerializer().serializeToString(copied);
  const sheet = `<svg xmlns="http://www.w3.org/2000/svg" width="${Math.ceil(width)}" height="${Math.ceil(height)}"><rect width="100%" height="100%" fill="${dark}"/><foreignObject width="100%" height="100%">${text}</foreignObject></svg>`;
  const svg = new Blob([sheet], { type: "image/svg+xml" });
  if (kind === "svg") return svg;
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(sheet)}`;
  await image.decode();
  const canvas = el("canvas"), ratio = 2;
  canvas.width = Math.ceil(width) * ratio; canvas.height = Math.ceil(height) * ratio;
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  return new Promise((resolve, reject) => canvas.toBlob((blob) => (blob ? resolve(blob) : reject(new Error("the picture is too large"))), "image/png"));
}
function copy(element) {
  const made = element.tagName === "CANVAS" ? document.createElement("img") : element.cloneNode(false);
  if (element.tagName === "CANVAS") made.src = element.toDataURL();
  if (element.tagName === "SELECT" || element.tagName === "INPUT") made.setAttribute("value", element.value);
  const style = getComputedStyle(element);
  made.style.cssText = Array.from(style, (name) => `${name}:${style.getPropertyValue(name)}`).join(";");  // an attribute would be refused by the page's policy
  for (const child of element.childNodes) {
    if (child.nodeType === Node.TEXT_NODE) made.append(child.textContent);
    else if (child.nodeType === Node.ELEMENT_NODE && getComputedStyle(child).display !== "none") made.append(copy(child));
  }
  return made;
}
