// What is under the pointer, in words beside it.
"use strict";

const Tip = {
  box: document.getElementById("tip"),
  show(event, text) {
    Tip.box.textContent = text;
    Tip.box.hidden = false;
    const most = document.documentElement.clientWidth - Tip.box.offsetWidth - 8;
    Tip.box.style.left = Math.max(4, Math.min(event.pageX + 14, most)) + "px";
    // Above the pointer where there is no room below.
    const isLow = event.clientY + 14 + Tip.box.offsetHeight > document.documentElement.clientHeight;
    Tip.box.style.top = (isLow ? Math.max(scrollY, event.pageY - Tip.box.offsetHeight - 8) : event.pageY + 14) + "px";
  },
  hide() { Tip.box.hidden = true; },
  // How many of something, of which one is called this.
  counted(n, one) { return Tip.grouped(n) + " " + one + (n === 1 ? "" : "s"); },
  // A whole number as people read it.
  grouped(n) { return Math.round(n).toLocaleString("en-US"); },
};
