"use strict";
// Saves a plot as a file of its own, with the light colors.
for (const button of document.querySelectorAll("button[data-save]")) {
  button.addEventListener("click", () => {
    const figure = button.closest("figure");
    const svg = figure.querySelector("svg").cloneNode(true);
    const style = document.createElementNS("http://www.w3.org/2000/svg", "style");
    style.textContent = plotStyle;
    svg.prepend(style);
    const text = new XMLSerializer().serializeToString(svg);
    const file = new Blob([text], { type: "image/svg+xml" });
    if (button.dataset.save === "svg") {
      save(file, figure.id + ".svg");
      return;
    }
    const box = svg.viewBox.baseVal;
    const image = new Image();
    const address = URL.createObjectURL(file);
    image.onload = () => {
      const canvas = document.createElement("canvas");
      canvas.width = 2 * box.width;
      canvas.height = 2 * box.height;
      canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
      URL.revokeObjectURL(address);
      canvas.toBlob((picture) => save(picture, figure.id + ".png"), "image/png");
    };
    image.src = address;
  });
}

function save(blob, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  URL.revokeObjectURL(link.href);
}
