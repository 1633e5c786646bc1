// The map: all points drawn into the pixels of a canvas, and the nearest point found through a grid.

const PADDING = 16;
const STEPS = 4; // masks of a disc for this many shifts of a fraction of a pixel, in both directions
const DIMMED = 0;
const PLAIN = 1;

class Scatter {
  constructor(canvas, { x, y }, { equalAspect, flipY }) {
    Object.assign(this, { canvas, x, y, equalAspect, flipY, scheduled: false });
    this.context = canvas.getContext("2d", { alpha: false, willReadFrequently: true }); // pixels are made here, not by the graphics card
    this.drawable = Int32Array.from(x.keys()).filter((row) => Number.isFinite(x[row]) && Number.isFinite(y[row]));
    this.bounds = { x: rangeOf(x, this.drawable), y: rangeOf(y, this.drawable) };
    this.colors = new Uint32Array(x.length);
    this.order = this.drawable;
    this.layers = new Uint8Array(x.length).fill(PLAIN);
    this.grid = new Grid(x, y, this.drawable, this.bounds);
    this.after = () => {};
    this.reset();
  }

  reset() {
    this.zoom = 1;
    this.center = { x: middle(this.bounds.x), y: middle(this.bounds.y) };
  }

  // Adapts to the size of the element and the density of the screen.
  resize(ratio = window.devicePixelRatio || 1) {
    const box = this.canvas.getBoundingClientRect();
    if (box.width === 0) return;
    Object.assign(this, { width: box.width, height: box.height, ratio });
    this.canvas.parentElement.style.setProperty("--aspect", box.width / box.height); // for print
    this.canvas.width = Math.round(box.width * ratio);
    this.canvas.height = Math.round(box.height * ratio);
    this.image = this.context.createImageData(this.canvas.width, this.canvas.height);
    this.pixels = new Uint32Array(this.image.data.buffer);
    this.draw();
  }

  // Where a point is on the screen: pixel = scale · coordinate + offset.
  get view() {
    let scaleX = (this.width - 2 * PADDING) / width(this.bounds.x);
    let scaleY = (this.height - 2 * PADDING) / width(this.bounds.y);
    if (this.equalAspect) scaleX = scaleY = Math.min(scaleX, scaleY);
    scaleX *= this.zoom;
    scaleY *= this.zoom * (this.flipY ? 1 : -1);
    return { scaleX, offsetX: this.width / 2 - scaleX * this.center.x, scaleY, offsetY: this.height / 2 - scaleY * this.center.y };
  }

  at(row) {
    const view = this.view;
    return { x: view.scaleX * this.x[row] + view.offsetX, y: view.scaleY * this.y[row] + view.offsetY };
  }

  get radius() {
    const room = Math.sqrt((this.width * this.height) / Math.max(this.drawable.length, 1));
    const atFirst = clamped(0.32 * room, 1.5, 4.5);
    // Spots of tissue grow with the tissue; elsewhere zooming is there to see points apart.
    return this.equalAspect ? Math.min(atFirst * this.zoom, 24) : Math.min(atFirst * Math.sqrt(this.zoom), 7);
  }

  // One color and one layer for each row; dimmed rows are drawn first, otherwise the order is that of the table, which favors no class.
  look(colors, layers) {
    this.colors = colors;
    this.layers = layers;
    this.order = new Int32Array(this.drawable.length);
    let place = 0;
    for (const layer of [DIMMED, PLAIN]) {
      for (const row of this.drawable) if (layers[row] === layer) this.order[place++] = row;
    }
    this.schedule();
  }

  schedule() {
    if (this.scheduled) return;
    this.scheduled = true;
    requestAnimationFrame(() => {
      this.scheduled = false;
      this.draw();
    });
  }

  draw() {
    if (!this.image) return;
    this.pixels.fill(pixel(channelsOf(cssColor("--map"))));
    const radius = this.radius * this.ratio;
    this.stampAll(this.view, [discs(0.75 * radius), discs(radius)]);
    this.context.putImageData(this.image, 0, 0);
    this.canvas.dataset.view = JSON.stringify(this.view);
    this.after();
  }

  // Blends a disc into the pixels for each row; discs that touch the border of the map are left out.
  stampAll(view, discsOfLayers) {
    const { x, y, layers, colors, pixels, ratio } = this;
    const { width, height } = this.image;
    for (const row of this.order) {
      const { size, masks } = discsOfLayers[layers[row]];
      const left = (view.scaleX * x[row] + view.offsetX) * ratio - size / 2;
      const top = (view.scaleY * y[row] + view.offsetY) * ratio - size / 2;
      const column = Math.floor(left);
      const line = Math.floor(top);
      if (!(column >= 0 && line >= 0 && column + size <= width && line + size <= height)) continue;
      const mask = masks[Math.floor((top - line) * STEPS) * STEPS + Math.floor((left - column) * STEPS)];
      blend(pixels, line * width + column, width, mask, size, colors[row]);
    }
  }

  // The row nearest to a place on the screen, or -1 where none is within reach.
  nearest(x, y, reach) {
    const view = this.view;
    const toData = { x: (x - view.offsetX) / view.scaleX, y: (y - view.offsetY) / view.scaleY };
    let best = -1;
    let least = reach * reach;
    this.grid.visit(toData, reach / Math.abs(view.scaleX), reach / Math.abs(view.scaleY), (row) => {
      const distance = (view.scaleX * (this.x[row] - toData.x)) ** 2 + (view.scaleY * (this.y[row] - toData.y)) ** 2;
      if (distance < least || (distance === least && this.layers[row] > this.layers[best])) {
        best = row;
        least = distance;
      }
    });
    return best;
  }

  // The next row to the right of a row (dx = 1), above it (dy = -1), …; straight ahead counts as nearer than aside.
  neighbor(from, dx, dy) {
    const start = this.at(from);
    let best = from;
    let least = Infinity;
    for (const row of this.drawable) {
      const here = this.at(row);
      const along = (here.x - start.x) * dx + (here.y - start.y) * dy;
      const aside = Math.abs((here.x - start.x) * dy) + Math.abs((here.y - start.y) * dx);
      if (along > 0.01 && along >= aside && along + 2 * aside < least) {
        best = row;
        least = along + 2 * aside;
      }
    }
    return best;
  }

  zoomBy(factor, x = this.width / 2, y = this.height / 2) {
    const before = this.view;
    this.zoom = clamped(this.zoom * factor, 1, 200);
    const after = this.view;
    // What was under the pointer stays there.
    this.center.x += (x - before.offsetX) / before.scaleX - (x - after.offsetX) / after.scaleX;
    this.center.y += (y - before.offsetY) / before.scaleY - (y - after.offsetY) / after.scaleY;
    if (this.zoom === 1) this.reset();
    this.schedule();
  }

  moveBy(dx, dy) {
    const view = this.view;
    const inside = ({ low, high }, value) => clamped(value, low, high);
    this.center.x = inside(this.bounds.x, this.center.x - dx / view.scaleX);
    this.center.y = inside(this.bounds.y, this.center.y - dy / view.scaleY);
    this.schedule();
  }
}

// Mixes a color into a square of pixels, as far as the mask covers each; red and blue are mixed at once, green between them.
function blend(pixels, corner, width, mask, size, color) {
  const redBlue = color & 0xff00ff;
  const green = color & 0x00ff00;
  for (let k = 0, line = 0; line < size; line++) {
    let place = corner + line * width;
    for (const end = place + size; place < end; place++, k++) {
      const cover = mask[k];
      if (cover === 0) continue;
      const under = pixels[place];
      const mixedRedBlue = ((redBlue * cover + (under & 0xff00ff) * (128 - cover)) >> 7) & 0xff00ff;
      const mixedGreen = ((green * cover + (under & 0x00ff00) * (128 - cover)) >> 7) & 0x00ff00;
      pixels[place] = 0xff000000 | mixedRedBlue | mixedGreen;
    }
  }
}

// Rows by the cell of a regular grid in which they lie.
class Grid {
  constructor(x, y, drawable, bounds) {
    this.side = clamped(Math.ceil(Math.sqrt(drawable.length / 3)), 1, 400);
    this.bounds = bounds;
    const cells = Int32Array.from(drawable, (row) => this.line("y", y[row]) * this.side + this.line("x", x[row]));
    this.starts = new Int32Array(this.side * this.side + 1);
    for (const cell of cells) this.starts[cell + 1]++;
    for (let cell = 0; cell < this.side * this.side; cell++) this.starts[cell + 1] += this.starts[cell];
    const next = this.starts.slice();
    this.rows = new Int32Array(drawable.length);
    drawable.forEach((row, k) => (this.rows[next[cells[k]]++] = row));
  }

  line(axis, value) {
    const { low } = this.bounds[axis];
    return clamped(Math.floor(((value - low) / width(this.bounds[axis])) * this.side), 0, this.side - 1);
  }

  visit(center, reachX, reachY, look) {
    const right = this.line("x", center.x + reachX);
    const below = this.line("y", center.y + reachY);
    for (let line = this.line("y", center.y - reachY); line <= below; line++) {
      for (let column = this.line("x", center.x - reachX); column <= right; column++) {
        const cell = line * this.side + column;
        for (let k = this.starts[cell]; k < this.starts[cell + 1]; k++) look(this.rows[k]);
      }
    }
  }
}

// How much of each pixel a disc covers, out of 128, by which the mixture stays within 31 bits, for each fraction of a pixel by which its corner is shifted.
function discs(radius) {
  const size = Math.ceil(2 * radius) + 1;
  const masks = [];
  for (let shift = 0; shift < STEPS * STEPS; shift++) {
    const centerX = size / 2 + ((shift % STEPS) + 0.5) / STEPS;
    const centerY = size / 2 + (Math.floor(shift / STEPS) + 0.5) / STEPS;
    const distance = (k) => Math.hypot((k % size) + 0.5 - centerX, Math.floor(k / size) + 0.5 - centerY);
    masks.push(Uint8Array.from({ length: size * size }, (_, k) => Math.round(115 * clamped(radius + 0.5 - distance(k), 0, 1))));
  }
  return { size, masks };
}

function rangeOf(values, which) {
  let low = Infinity;
  let high = -Infinity;
  for (const k of which) {
    if (values[k] < low) low = values[k];
    if (values[k] > high) high = values[k];
  }
  if (low > high) return { low: 0, high: 1 };
  return low === high ? { low: low - 0.5, high: high + 0.5 } : { low, high };
}

function width({ low, high }) {
  return high - low;
}

function middle({ low, high }) {
  return (low + high) / 2;
}
