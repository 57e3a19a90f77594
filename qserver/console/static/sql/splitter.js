// The line between two panes, which a pointer or the arrow keys move.

import { h } from "../core/dom.js";
import { keep, kept } from "../core/kept.js";

const LEAST = 15;
const MOST = 85;
const STEP = 4;

export class Splitter {
  /** `above` gets a share of the height that both have; it is kept under `name`. */
  constructor(above, below, name) {
    this.above = above;
    this.name = name;
    this.element = h("div", {
      class: "splitter",
      role: "separator",
      tabindex: 0,
      "aria-orientation": "horizontal",
      "aria-label": "Height of the editor",
      "aria-valuemin": LEAST,
      "aria-valuemax": MOST,
      on: {
        pointerdown: (event) => this.#drag(event),
        keydown: (event) => this.#key(event),
      },
    });
    below.classList.add("below");
    this.set(kept(localStorage, name, 42));
  }

  set(share) {
    this.share = Math.min(MOST, Math.max(LEAST, Number(share) || 42));
    this.above.style.setProperty("flex", `0 0 ${this.share}%`);
    this.element.setAttribute("aria-valuenow", Math.round(this.share));
  }

  #drag(event) {
    event.preventDefault();
    const box = this.element.parentElement.getBoundingClientRect();
    this.element.setPointerCapture(event.pointerId);
    this.element.onpointermove = (moved) => this.set(((moved.clientY - box.top) / box.height) * 100);
    this.element.onpointerup = () => {
      this.element.onpointermove = null;
      keep(localStorage, this.name, this.share);
    };
  }

  #key(event) {
    const step = { ArrowUp: -STEP, ArrowDown: STEP }[event.key];
    if (!step) return;
    event.preventDefault();
    this.set(this.share + step);
    keep(localStorage, this.name, this.share);
  }
}
