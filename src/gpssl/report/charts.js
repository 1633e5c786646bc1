// Curves and bars, as SVG. Colors come from the style sheet, so that they follow the theme.

const MARGIN = { left: 64, right: 24, top: 10, bottom: 44 };

function shape(tag, attributes, children = []) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

// Round numbers that divide a range into about n steps.
function ticks(low, high, n) {
  const rough = (high - low) / n;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((factor) => factor * power).find((size) => size >= rough * 0.999);
  const first = Math.ceil(low / step - 1e-9);
  const found = [];
  for (let k = first; k * step <= high + step * 1e-9; k++) found.push(k * step || 0);
  return found;
}

// The frame of a chart: scales, axes, a group that is clipped to the panel.
class Panel {
  constructor(host, { x, y, xName, yName, xText, yText, height = 300, xTicks, yTicks, label }) {
    this.width = Math.max(host.clientWidth, 240);
    Object.assign(this, { host, height, x, y });
    this.svg = shape("svg", { viewBox: `0 0 ${this.width} ${height}`, role: "img", "aria-label": label });
    const clip = `${host.id}-clip`;
    const inner = { x: MARGIN.left, y: MARGIN.top, width: this.right - MARGIN.left, height: this.bottom - MARGIN.top };
    this.marks = shape("g", { "clip-path": `url(#${clip})` });
    this.svg.append(shape("clipPath", { id: clip }, [shape("rect", inner)]));
    for (const value of yTicks ?? ticks(y.low, y.high, 5)) this.lineOfTick(value, yText(value));
    for (const value of xTicks ?? ticks(x.low, x.high, this.width < 360 ? 4 : 6)) this.textOfTick(value, xText(value));
    this.svg.append(this.marks, this.nameOfX(xName), this.nameOfY(yName));
    host.replaceChildren(this.svg);
  }

  get right() {
    return this.width - MARGIN.right;
  }

  get bottom() {
    return this.height - MARGIN.bottom;
  }

  atX(value) {
    return MARGIN.left + ((value - this.x.low) / width(this.x)) * (this.right - MARGIN.left);
  }

  atY(value) {
    return this.bottom - ((value - this.y.low) / width(this.y)) * (this.bottom - MARGIN.top);
  }

  // Which share of the panel's width lies to the left of a place on the screen.
  shareAt(place) {
    return (place - MARGIN.left) / (this.right - MARGIN.left);
  }

  lineOfTick(value, text) {
    const y = this.atY(value);
    this.svg.append(
      shape("line", { class: "grid-line", x1: MARGIN.left, x2: this.right, y1: y, y2: y }),
      shape("text", { class: "tick", x: MARGIN.left - 8, y: y + 4, "text-anchor": "end" }, [text]),
    );
  }

  textOfTick(value, text) {
    const x = this.atX(value);
    this.svg.append(
      shape("line", { class: "axis-line", x1: x, x2: x, y1: this.bottom, y2: this.bottom + 4 }),
      shape("text", { class: "tick", x, y: this.bottom + 17, "text-anchor": "middle" }, [text]),
    );
  }

  nameOfX(name) {
    return shape("text", { class: "axis-name", x: (MARGIN.left + this.right) / 2, y: this.height - 6, "text-anchor": "middle" }, [name]);
  }

  nameOfY(name) {
    const middle = (MARGIN.top + this.bottom) / 2;
    return shape("text", { class: "axis-name", transform: `translate(14 ${middle}) rotate(-90)`, "text-anchor": "middle" }, [name]);
  }

  // Texts for the place under the pointer, in a box that follows it.
  onHover(linesAt) {
    const tip = element("div", { className: "tip", hidden: true });
    this.host.append(tip);
    this.svg.addEventListener("pointerleave", () => (tip.hidden = true));
    this.svg.addEventListener("pointermove", (event) => {
      const box = this.svg.getBoundingClientRect();
      const [x, y] = [event.clientX - box.left, event.clientY - box.top];
      const lines = linesAt(x, y);
      tip.hidden = lines.length === 0;
      tip.replaceChildren(...lines.map((line) => element("p", { textContent: line })));
      tip.style.left = `${clamped(x + 14, 0, Math.max(box.width - tip.offsetWidth, 0))}px`;
      tip.style.top = `${clamped(y - tip.offsetHeight - 10, 0, box.height)}px`;
    });
  }
}

// A chart with its numbers unpacked and a look for each curve.
function preparedChart(chart) {
  const curves = chart.curves.map((curve, number) => ({
    name: curve.name,
    x: unpacked(curve.x),
    y: unpacked(curve.y),
    counts: curve.counts && unpacked(curve.counts),
    style: {
      stroke: PALETTE[number % PALETTE.length],
      "stroke-width": number === 0 ? 2.6 : 1.6,
      "stroke-dasharray": DASHES[number % DASHES.length],
    },
  }));
  return { ...chart, curves };
}

function pathOf(panel, { x, y }, stepped) {
  let path = "";
  for (let k = 0; k < x.length; k++) {
    const [left, top] = [panel.atX(x[k]).toFixed(1), panel.atY(y[k]).toFixed(1)];
    // The risk at a coverage holds back to the one before.
    path += k === 0 ? `M${left} ${top}` : stepped ? `V${top}H${left}` : `L${left} ${top}`;
  }
  return path;
}

function drawLine(panel, curve, stepped = false) {
  panel.marks.append(shape("path", { class: "curve", d: pathOf(panel, curve, stepped), ...curve.style }));
}

function legendOfCurves(curves) {
  return element("ul", { className: "curve-names" }, curves.map((curve) => {
    const line = shape("line", { x1: 1, x2: 27, y1: 5, y2: 5, ...curve.style });
    return element("li", {}, [shape("svg", { viewBox: "0 0 28 10", class: "sample", "aria-hidden": "true" }, [line]), curve.name]);
  }));
}

// Risk against coverage; `now` is the target with its expected coverage and risk, or null.
function drawRiskCoverage(host, chart, now) {
  const { curves } = chart;
  // The first few rows of a curve say little and reach far.
  const seen = curves.flatMap((curve) => Array.from(curve.y).filter((risk, k) => Number.isFinite(risk) && curve.x[k] >= 0.1));
  const top = Math.max(...seen, now && Number.isFinite(now.target) ? 1.2 * now.target : 0, 1e-9) * 1.08;
  const yText = (value) => withUnit(value, chart.yUnit);
  const panel = new Panel(host, {
    x: { low: 0, high: 1 }, y: { low: -0.02 * top, high: top }, xName: chart.xName, yName: chart.yName, xText: share, yText,
    label: `${chart.yName} against ${chart.xName}: ${curves.map((curve) => curve.name).join(", ")}`,
  });
  for (const curve of curves.slice().reverse()) drawLine(panel, curve, true);
  if (now) markTarget(panel, now);
  panel.host.append(legendOfCurves(curves));
  panel.onHover((x) => {
    const coverage = panel.shareAt(x);
    if (coverage < 0 || coverage > 1) return [];
    return [`${chart.xName}: ${share(coverage)}`, ...curves.map((curve) => `${curve.name}: ${yText(valueAt(curve, coverage))}`)];
  });
}

function valueAt({ x, y }, wanted) {
  const k = x.findIndex((value) => value >= wanted - 1e-6);
  return k < 0 ? NaN : y[k];
}

function markTarget(panel, { target, coverage, risk }) {
  const y = panel.atY(target);
  if (Number.isFinite(y)) panel.marks.append(shape("line", { class: "target", x1: MARGIN.left, x2: panel.right, y1: y, y2: y }));
  if (Number.isFinite(risk)) panel.marks.append(shape("circle", { class: "now", cx: panel.atX(coverage), cy: panel.atY(risk), r: 6 }));
}

function drawReliability(host, chart) {
  const { curves } = chart;
  const all = curves.flatMap((curve) => [...curve.x, ...curve.y]).filter(Number.isFinite);
  const low = clamped(Math.floor(Math.min(...all, 0.9) * 10) / 10, 0, 0.9);
  const range = { low: low - 0.03, high: 1.03 };
  const yText = (value) => withUnit(value, chart.yUnit);
  const panel = new Panel(host, {
    x: range, y: range, xName: chart.xName, yName: chart.yName, xText: share, yText,
    xTicks: ticks(low, 1, 5), yTicks: ticks(low, 1, 5), label: `${chart.yName} against ${chart.xName}`,
  });
  panel.marks.append(shape("line", { class: "diagonal", x1: panel.atX(low), y1: panel.atY(low), x2: panel.atX(1), y2: panel.atY(1) }));
  const most = Math.max(...curves.flatMap((curve) => [...(curve.counts ?? [1])]));
  for (const curve of curves.slice().reverse()) drawDots(panel, curve, most);
  panel.host.append(legendOfCurves(curves));
  panel.onHover((x, y) => nearestDot(panel, curves, x, y, yText, chart));
}

function drawDots(panel, curve, most) {
  drawLine(panel, curve);
  curve.x.forEach((x, k) => {
    const r = curve.counts ? 2 + 6 * Math.sqrt(curve.counts[k] / most) : 3.5;
    panel.marks.append(shape("circle", { class: "dot", cx: panel.atX(x), cy: panel.atY(curve.y[k]), r, fill: curve.style.stroke }));
  });
}

function nearestDot(panel, curves, x, y, yText, chart) {
  let best = { distance: 24 * 24, lines: [] };
  for (const curve of curves) {
    curve.x.forEach((value, k) => {
      const distance = (panel.atX(value) - x) ** 2 + (panel.atY(curve.y[k]) - y) ** 2;
      if (distance >= best.distance) return;
      const lines = [curve.name, `${chart.xName}: ${share(value)}`, `${chart.yName}: ${yText(curve.y[k])}`];
      if (curve.counts) lines.push(rows(curve.counts[k]));
      best = { distance, lines };
    });
  }
  return best.lines;
}

// Stacked bars: heights [bars][parts], each part with a class of the style sheet.
function drawBars(panel, edges, heights, classes) {
  heights.forEach((parts, k) => {
    let low = panel.y.low;
    const [left, right] = [panel.atX(edges[k]), panel.atX(edges[k + 1])];
    const gap = Math.min(1, (right - left) / 4);
    parts.forEach((part, p) => {
      const [top, bottom] = [panel.atY(low + part), panel.atY(low)];
      const box = { x: left + gap / 2, width: Math.max(right - left - gap, 0.5), y: top, height: Math.max(bottom - top, 0) };
      if (part > 0) panel.marks.append(shape("rect", { class: classes[p], ...box }));
      low += part;
    });
  });
}

const MOST_BARS = 100;
const SUPERSCRIPTS = { "-": "⁻", 0: "⁰", 1: "¹", 2: "²", 3: "³", 4: "⁴", 5: "⁵", 6: "⁶", 7: "⁷", 8: "⁸", 9: "⁹" };

function powerOfTen(exponent) {
  if (Math.abs(exponent) <= 3) return trimmed(10 ** exponent, 1);
  return "10" + Array.from(String(exponent), (sign) => SUPERSCRIPTS[sign]).join("");
}

function drawSpectrum(host, eigenvalues) {
  const shown = Array.from(eigenvalues).filter((value) => value > 0).slice(0, MOST_BARS);
  const logs = shown.map(Math.log10);
  const y = { low: Math.floor(Math.min(...logs, 0) - 0.001), high: Math.ceil(Math.max(...logs)) };
  const every = Math.ceil((y.high - y.low) / 6);
  const yTicks = ticks(y.low, y.high, y.high - y.low).filter((value) => (value - y.low) % every === 0);
  const xTicks = ticks(1, Math.max(shown.length, 2), 8).filter((value) => Number.isInteger(value) && value <= shown.length);
  const panel = new Panel(host, {
    x: { low: 0.5, high: shown.length + 0.5 }, y, xTicks, yTicks, height: 240, xName: "learned direction", yName: "variance",
    xText: String, yText: powerOfTen, label: "Spectrum: variance of each learned direction",
  });
  drawBars(panel, Array.from({ length: shown.length + 1 }, (_, k) => k + 0.5), logs.map((value) => [value - y.low]), ["bar"]);
  panel.onHover((x) => {
    const k = Math.floor(panel.shareAt(x) * shown.length);
    return k >= 0 && k < shown.length ? [`Direction ${k + 1}: ${trimmed(shown[k], 3)}`] : [];
  });
}
