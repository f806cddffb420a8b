// A pen that writes what a canvas would show as SVG.
"use strict";

// The part of a canvas context that the drawings use, as SVG elements.
class SvgPen {
  constructor(width, height, font) {
    Object.assign(this, { width, height, font, fillStyle: "#000", strokeStyle: "#000", globalAlpha: 1, lineWidth: 1,
      textAlign: "left", textBaseline: "middle" });
    this.parts = []; this.path = []; this.dash = []; this.saved = []; this.clips = 0; this.open = 0;
    this.ruler = document.createElement("canvas").getContext("2d");
    this.ruler.font = font;
  }
  static text(value) { return String(value).replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/"/g, "&quot;"); }
  n(value) { return +value.toFixed(2); }
  shade() { return this.globalAlpha < 1 ? ` opacity="${this.n(this.globalAlpha)}"` : ""; }
  fillRect(x, y, w, h) {
    this.parts.push(`<rect x="${this.n(x)}" y="${this.n(y)}" width="${this.n(w)}" height="${this.n(h)}" fill="${this.fillStyle}"${this.shade()}/>`);
  }
  line() { return `stroke="${this.strokeStyle}" stroke-width="${this.lineWidth}"` + (this.dash.length ? ` stroke-dasharray="${this.dash.join(" ")}"` : "") + this.shade(); }
  strokeRect(x, y, w, h) {
    this.parts.push(`<rect x="${this.n(x)}" y="${this.n(y)}" width="${this.n(w)}" height="${this.n(h)}" fill="none" ${this.line()}/>`);
  }
  beginPath() { this.path = []; }
  moveTo(x, y) { this.path.push(`M${this.n(x)} ${this.n(y)}`); }
  lineTo(x, y) { this.path.push(`${this.path.length ? "L" : "M"}${this.n(x)} ${this.n(y)}`); }
  rect(x, y, w, h) { this.path.push(`M${this.n(x)} ${this.n(y)}h${this.n(w)}v${this.n(h)}h${this.n(-w)}z`); }
  fill() { this.parts.push(`<path d="${this.path.join("")}" fill="${this.fillStyle}"${this.shade()}/>`); }
  stroke() { this.parts.push(`<path d="${this.path.join("")}" fill="none" ${this.line()}/>`); }
  clip() {
    const name = "clip" + this.clips++;
    this.parts.push(`<clipPath id="${name}"><path d="${this.path.join("")}"/></clipPath><g clip-path="url(#${name})">`);
    this.open++;
  }
  setLineDash(dash) { this.dash = dash; }
  save() {
    const { fillStyle, strokeStyle, globalAlpha, lineWidth, textAlign, dash, open } = this;
    this.saved.push({ fillStyle, strokeStyle, globalAlpha, lineWidth, textAlign, dash, open });
  }
  restore() {
    const before = this.saved.pop();
    while (this.open > before.open) { this.parts.push("</g>"); this.open--; }
    Object.assign(this, before);
  }
  measureText(text) { return this.ruler.measureText(text); }
  fillText(text, x, y, most) {
    const anchor = { left: "start", center: "middle", right: "end" }[this.textAlign];
    const wide = most && this.measureText(text).width > most ? ` textLength="${this.n(most)}" lengthAdjust="spacingAndGlyphs"` : "";
    this.parts.push(`<text x="${this.n(x)}" y="${this.n(y)}" fill="${this.fillStyle}" text-anchor="${anchor}" dominant-baseline="central"${wide}${this.shade()}>${SvgPen.text(text)}</text>`);
  }
  file(paper) {
    return `<svg xmlns="http://www.w3.org/2000/svg" width="${this.width}" height="${this.height}" viewBox="0 0 ${this.width} ${this.height}" font-family="system-ui, sans-serif" font-size="12">` +
      `<rect width="100%" height="100%" fill="${paper}"/>${this.parts.join("\n")}</svg>`;
  }
}
