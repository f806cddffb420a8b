// What is under the pointer, in words beside it.
"use strict";

const Tip = {
  box: document.getElementById("tip"),
  show(event, text) {
    Tip.box.textContent = text;
    Tip.box.hidden = false;
    const most = document.documentElement.clientWidth - Tip.box.offsetWidth - 8;
    Tip.box.style.left = Math.max(4, Math.min(event.pageX + 14, most)) + "px";
    Tip.box.style.top = event.pageY + 14 + "px";
  },
  hide() { Tip.box.hidden = true; },
};
