// Hovering, pinning, dragging and zooming, by mouse, touch or keyboard.

const REACH = { mouse: 14, pen: 14, touch: 24 };
const MOST_LINES = 12; // of the user's table beside the pointer; a pinned row shows all

class Pointer {
  constructor(scatter, describe) {
    Object.assign(this, { scatter, describe, hovered: -1, pinned: -1, touches: new Map(), moved: 0, isClear: false });
    this.overlay = byId("overlay");
    this.tip = byId("tip");
    this.last = null;
    this.listen(scatter.canvas);
    scatter.after = () => this.mark();
  }

  listen(canvas) {
    canvas.addEventListener("pointermove", (event) => this.move(event));
    canvas.addEventListener("pointerdown", (event) => this.press(event));
    canvas.addEventListener("pointerup", (event) => this.release(event));
    canvas.addEventListener("pointercancel", (event) => this.touches.delete(event.pointerId));
    canvas.addEventListener("pointerleave", () => this.hover(-1));
    canvas.addEventListener("dblclick", () => this.reset());
    canvas.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    canvas.addEventListener("keydown", (event) => this.key(event));
    canvas.addEventListener("blur", () => this.hover(-1));
    byId("zoom-in").addEventListener("click", () => this.scatter.zoomBy(1.6));
    byId("zoom-out").addEventListener("click", () => this.scatter.zoomBy(1 / 1.6));
    byId("zoom-reset").addEventListener("click", () => this.reset());
  }

  move(event) {
    const before = this.touches.get(event.pointerId);
    if (!before) return this.hover(this.rowUnder(event));
    const here = { x: event.offsetX, y: event.offsetY };
    this.moved += Math.hypot(here.x - before.x, here.y - before.y);
    this.touches.set(event.pointerId, here);
    if (this.touches.size === 2) this.pinch(event.pointerId, before, here);
    else if (this.moved > 4) {
      this.hover(-1);
      this.scatter.moveBy(here.x - before.x, here.y - before.y);
    }
    return undefined;
  }

  rowUnder(event) {
    return this.scatter.nearest(event.offsetX, event.offsetY, REACH[event.pointerType] ?? 14);
  }

  pinch(moving, before, here) {
    const [other] = [...this.touches].filter(([id]) => id !== moving).map(([, place]) => place);
    const spread = (place) => Math.max(Math.hypot(place.x - other.x, place.y - other.y), 1);
    this.scatter.zoomBy(spread(here) / spread(before), (here.x + other.x) / 2, (here.y + other.y) / 2);
  }

  press(event) {
    this.touches.set(event.pointerId, { x: event.offsetX, y: event.offsetY });
    this.moved = 0;
    this.scatter.canvas.setPointerCapture(event.pointerId);
  }

  release(event) {
    this.touches.delete(event.pointerId);
    if (this.moved > 4) return;
    const row = this.rowUnder(event);
    if (row >= 0) this.pin(row);
    this.hover(row);
  }

  // The wheel belongs to the page until the map has been clicked, so that one can scroll past it.
  wheel(event) {
    if (!event.ctrlKey && !event.metaKey && document.activeElement !== this.scatter.canvas) return;
    event.preventDefault();
    this.scatter.zoomBy(Math.exp(-clamped(event.deltaY, -100, 100) * 0.004), event.offsetX, event.offsetY);
  }

  key(event) {
    const directions = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowDown: [0, 1], ArrowUp: [0, -1] };
    if (event.key in directions) this.step(...directions[event.key]);
    else if (event.key === "+" || event.key === "=") this.scatter.zoomBy(1.6);
    else if (event.key === "-") this.scatter.zoomBy(1 / 1.6);
    else if (event.key === "0" || event.key === "Escape") this.reset();
    else if (event.key === "Enter" && this.hovered >= 0) this.pin(this.hovered);
    else return;
    event.preventDefault();
  }

  step(dx, dy) {
    const { scatter } = this;
    const middle = () => scatter.nearest(scatter.width / 2, scatter.height / 2, scatter.width);
    this.hover(this.hovered >= 0 ? scatter.neighbor(this.hovered, dx, dy) : middle());
  }

  reset() {
    this.scatter.reset();
    this.hover(-1);
    this.scatter.schedule();
  }

  hover(row) {
    if (row === this.hovered) return;
    this.hovered = row;
    this.tip.hidden = row < 0;
    if (row >= 0) {
      this.tip.replaceChildren(...this.describe(row, MOST_LINES));
      this.place(this.scatter.at(row));
    }
    this.mark();
  }

  // Beside the point, inside the map where there is room.
  place({ x, y }) {
    const { offsetWidth, offsetHeight } = this.tip;
    const left = x + 16 + offsetWidth > this.scatter.width ? x - 16 - offsetWidth : x + 16;
    this.tip.style.left = `${clamped(left, 0, Math.max(this.scatter.width - offsetWidth, 0))}px`;
    this.tip.style.top = `${clamped(y - offsetHeight / 2, 0, Math.max(this.scatter.height - offsetHeight, 0))}px`;
  }

  pin(row) {
    this.pinned = row;
    const close = element("button", { type: "button", className: "quiet no-print", textContent: "Close" });
    close.addEventListener("click", () => this.unpin());
    byId("pinned").hidden = false;
    byId("pinned").replaceChildren(close, ...this.describe(row, Infinity));
    this.mark();
  }

  unpin() {
    this.pinned = -1;
    byId("pinned").hidden = true;
    this.mark();
  }

  // Rings around the hovered and the pinned row, on a canvas of their own.
  mark() {
    const { scatter, overlay } = this;
    const marked = [this.pinned, this.hovered].filter((row) => row >= 0);
    if (marked.length === 0 && this.isClear) return;
    this.isClear = marked.length === 0;
    overlay.width = scatter.canvas.width; // clears it
    overlay.height = scatter.canvas.height;
    const context = overlay.getContext("2d");
    context.scale(scatter.ratio, scatter.ratio);
    for (const row of marked) this.ring(context, scatter.at(row));
    if (this.hovered >= 0) this.place(scatter.at(this.hovered));
  }

  ring(context, { x, y }) {
    for (const [color, lineWidth] of [[cssColor("--map"), 5], [cssColor("--text"), 2]]) {
      context.beginPath();
      context.arc(x, y, this.scatter.radius + 3, 0, 2 * Math.PI);
      Object.assign(context, { strokeStyle: color, lineWidth });
      context.stroke();
    }
  }
}
