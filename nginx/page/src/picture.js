// Pictures: fetched, so that a file that has changed is never shown as it was, and shown in an <img>, where nothing in them runs.
import { h, openDialog } from "./dom.js";

const TYPES = /^image\/(png|jpeg|gif|webp|avif|bmp|svg\+xml)$/;
const MAX = 32 << 20; // bytes

export const isPicture = (type) => TYPES.test(type ?? "");

async function load(url) {
  const answer = await fetch(url, { cache: "no-cache", credentials: "omit", redirect: "error" });
  if (!answer.ok) throw new Error(answer.status === 404 ? "it is not there any more" : `the server answered ${answer.status}`);
  const type = (answer.headers.get("Content-Type") ?? "").split(";")[0];
  if (!isPicture(type)) throw new Error("it is no picture");
  if (Number(answer.headers.get("Content-Length")) > MAX) throw new Error("it is too large to be shown: download it");
  return new Blob([await answer.arrayBuffer()], { type });
}

/** A button with the picture in it; a click shows it whole. */
export function picture(url, name) {
  const image = h("img", { alt: name });
  const frame = h("button", { type: "button", class: "picture loading", ariaLabel: `${name}: show it in full size`, onclick: () => content && showWhole(content, name) }, image);
  let content;
  load(url).then((blob) => {
    content = blob;
    image.addEventListener("load", () => frame.classList.remove("loading"));
    image.addEventListener("error", () => fail(frame, name, "it cannot be shown"));
    show(image, blob);
  }, (problem) => fail(frame, name, problem.message));
  return frame;
}

function show(image, blob) {
  const url = URL.createObjectURL(blob);
  const done = () => URL.revokeObjectURL(url);
  image.addEventListener("load", done, { once: true });
  image.addEventListener("error", done, { once: true });
  image.src = url;
}

function fail(frame, name, why) {
  frame.classList.remove("loading");
  frame.disabled = true;
  frame.replaceChildren(h("span", { class: "missing" }, `${name}: ${why}`));
}

function showWhole(blob, name) {
  const image = h("img", { alt: name });
  const { dialog } = openDialog(name, h("div", { class: "whole", tabindex: "0" }, image));
  show(image, blob);
  dialog.classList.add("wide");
}
