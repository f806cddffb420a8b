// Drawings as files, SVG or PNG.
"use strict";

const Save = {
  file(name, type, content) {
    const link = document.createElement("a");
    link.download = name;
    link.href = URL.createObjectURL(content instanceof Blob ? content : new Blob([content], { type }));
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  },
  // An SVG that stands in the page, with the colours that it has there.
  standing(svg) {
    const copy = svg.cloneNode(true), style = getComputedStyle(document.documentElement);
    const box = svg.viewBox.baseVal;
    copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
    copy.setAttribute("width", box.width); copy.setAttribute("height", box.height);
    const rules = `text{fill:${style.getPropertyValue("--soft")};font:12px system-ui,sans-serif}` +
      `.grid{stroke:${style.getPropertyValue("--line")}}polyline{fill:none;stroke-width:2}`;
    const text = new XMLSerializer().serializeToString(copy)
      .replace(/var\((--[a-z0-9-]+)\)/g, (_, name) => style.getPropertyValue(name).trim());
    const paper = style.getPropertyValue("--panel").trim();
    return text.replace(/>/, `><style>${rules}</style><rect width="100%" height="100%" fill="${paper}"/>`);
  },
  png(name, svg, width, height) {
    const image = new Image(), scale = 2;
    image.onload = () => {
      const canvas = document.createElement("canvas");
      canvas.width = width * scale; canvas.height = height * scale;
      const pen = canvas.getContext("2d");
      pen.drawImage(image, 0, 0, canvas.width, canvas.height);
      canvas.toBlob((blob) => Save.file(name + ".png", "image/png", blob));
    };
    image.src = "data:image/svg+xml;charset=utf-8," + encodeURIComponent(svg);
  },
  // Two buttons behind a place of the page; `make` gives the SVG and its size.
  buttons(place, name, make) {
    const box = document.createElement("span");
    box.className = "save";
    for (const kind of ["SVG", "PNG"]) {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = kind;
      button.title = `save the drawing “${name}” as ${kind}`;
      button.onclick = () => {
        const { svg, width, height } = make();
        if (kind === "SVG") Save.file(name + ".svg", "image/svg+xml", svg); else Save.png(name, svg, width, height);
      };
      box.append(button);
    }
    place.append(box);
  },
};
