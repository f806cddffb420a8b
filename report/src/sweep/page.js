"use strict";
// Saves a plot as a file of its own, with the light colors.
for (const button of document.querySelectorAll("button[data-save]")) {
  button.addEventListener("click", () => {
    const figure = button.closest("figure");
    const svg = figure.querySelector("svg").cloneNode(true);
    for (const mark of svg.querySelectorAll(".near")) mark.classList.remove("near");
    const style = document.createElementNS("http://www.w3.org/2000/svg", "style");
    style.textContent = plotStyle;
    svg.prepend(style);
    const text = new XMLSerializer().serializeToString(svg);
    const box = svg.viewBox.baseVal;
    if (button.dataset.save === "svg") Save.file(figure.id + ".svg", "image/svg+xml", text);
    else Save.png(figure.id, text, box.width, box.height);
  });
}

// The value nearest to the pointer, with its interval: what the title of its mark says.
let near = null;
function point(mark) {
  near?.classList.remove("near");
  near = mark;
  near?.classList.add("near");
  if (!mark) Tip.hide();
}
for (const svg of document.querySelectorAll("figure svg")) {
  let marks = null;
  svg.addEventListener("pointermove", (event) => {
    marks ??= [...svg.querySelectorAll(".marker, .mark, .part")].filter((mark) => mark.querySelector("title")).map((mark) => {
      const text = mark.querySelector("title").textContent;
      // A title of its own would come a second time, and late.
      mark.querySelector("title").remove();
      mark.setAttribute("aria-label", text);
      return { mark, text };
    });
    const scale = svg.getBoundingClientRect().width / svg.viewBox.baseVal.width;
    let best = null, least = 24 * scale;
    for (const { mark, text } of marks) {
      const box = mark.getBoundingClientRect();
      const dx = Math.max(box.left - event.clientX, 0, event.clientX - box.right);
      const dy = Math.max(box.top - event.clientY, 0, event.clientY - box.bottom);
      const distance = Math.hypot(dx, dy);
      if (distance < least) { least = distance; best = { mark, text }; }
    }
    point(best?.mark ?? null);
    if (best) Tip.show(event, best.text);
  });
  svg.addEventListener("pointerleave", () => point(null));
}
window.addEventListener("resize", () => point(null));

// On a phone contents would be a screen or two before the first plot.
const contents = document.querySelector(".contents > details");
if (contents && matchMedia("(max-width: 900px)").matches) contents.open = false;
// A page of allocations has none.
contents?.addEventListener("click", (event) => {
  if (event.target.tagName === "A" && matchMedia("(max-width: 900px)").matches) contents.open = false;
});

// What a link leads to is shown, also if it is folded; all is unfolded on paper.
function unfold() {
  const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
  for (let at = target; at; at = at.parentElement) if (at.tagName === "DETAILS") at.open = true;
  if (target) target.scrollIntoView();
}
window.addEventListener("hashchange", unfold);
window.addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((details) => { details.open = true; }));
unfold();
