// Colors of the points, and the legend that explains them.

const MOST_LEVELS = 200; // in a legend
const DECISION_COLORS = ["--abstained", PALETTE[0], PALETTE[4]];

class Colors {
  constructor(decisions) {
    Object.assign(this, { decisions, all: given.colorings, chosen: 0, highlighted: -1 });
    for (const coloring of this.all) {
      if (coloring.kind === "class") this.prepareClasses(coloring, unpacked(coloring.codes));
      if (coloring.kind === "number") this.prepare(coloring, unpacked(coloring.values));
    }
  }

  prepareClasses(coloring, codes) {
    Object.assign(coloring, { codes, counts: countsOf(codes, coloring.levels.length) });
  }

  // The scale spans all but the outermost hundredths, so that one odd row does not take all the colors.
  prepare(coloring, values) {
    const finite = values.filter(Number.isFinite).sort();
    const at = (part) => finite[Math.round(part * (finite.length - 1))] ?? 0;
    const [low, high] = [at(0.01), at(0.99)];
    Object.assign(coloring, { values, low, high: high > low ? high : low + 1, isCut: at(0) < low || at(1) > high });
  }

  get current() {
    return this.all[this.chosen];
  }

  // Pixel colors and layers of all rows.
  look() {
    const colors = new Uint32Array(nRows);
    const layers = new Uint8Array(nRows).fill(PLAIN);
    const colorAt = this.current ? this[this.current.kind]() : () => pixel(channelsOf(PALETTE[0]));
    const gray = pixel(channelsOf(cssColor("--abstained")));
    const state = this.decisions?.controls ? this.decisions.state : null;
    const alone = this.highlighted < 0 ? null : this.current.kind === "decision" ? state : this.current.codes;
    for (let row = 0; row < nRows; row++) {
      const isDimmed = (state !== null && state[row] === ABSTAINED) || (alone !== null && alone[row] !== this.highlighted);
      colors[row] = isDimmed ? gray : colorAt(row);
      if (isDimmed) layers[row] = DIMMED;
    }
    return [colors, layers];
  }

  class() {
    const { codes } = this.current;
    const palette = PALETTE.map((color) => pixel(channelsOf(color)));
    const missing = pixel(channelsOf(cssColor("--missing")));
    return (row) => (codes[row] < 0 ? missing : palette[codes[row] % palette.length]);
  }

  number() {
    const { values, low, high } = this.current;
    const missing = pixel(channelsOf(cssColor("--missing")));
    const scale = Array.from({ length: 256 }, (_, k) => pixel(scaleColor(k / 255, isDark())));
    return (row) => {
      const place = (values[row] - low) / (high - low);
      return Number.isNaN(place) ? missing : scale[Math.round(255 * clamped(place, 0, 1))];
    };
  }

  decision() {
    const palette = DECISION_COLORS.map((color) => pixel(channelsOf(color.startsWith("--") ? cssColor(color) : color)));
    return (row) => palette[this.decisions.state[row]];
  }

  // What the current coloring says of a row, as a name and a text; null where the row's other lines say it already.
  lineFor(row) {
    if (!this.current || this.current.kind === "decision") return null;
    const { kind, name, codes, levels, values, unit } = this.current;
    if (kind === "class") return [name, codes[row] < 0 ? "no value" : levels[codes[row]]];
    return [name, Number.isNaN(values[row]) ? "no value" : withUnit(values[row], unit)];
  }

  drawLegend(changed) {
    byId("color-explanation").textContent = this.current.explanation;
    const parts = this.current.kind === "number" ? this.scaleParts() : [this.names(changed)];
    if (this.current.kind === "class" && this.current.levels.length > PALETTE.length) {
      parts.push(note(`More than ${PALETTE.length} classes: colors repeat. Click on a class to see it alone.`));
    } else if (this.current.kind === "class") {
      parts.push(element("p", { className: "explanation small no-print", textContent: "Click on a class to see it alone." }));
    }
    if (this.decisions?.controls && this.current.kind !== "decision") parts.push(grayNote());
    byId("legend").replaceChildren(...parts);
  }

  names(changed) {
    const isDecision = this.current.kind === "decision";
    const levels = isDecision ? DECISION_NAMES : this.current.levels.slice(0, MOST_LEVELS);
    const counts = isDecision ? countsOf(this.decisions.state, levels.length) : this.current.counts;
    const items = levels.map((level, code) => {
      const color = isDecision ? DECISION_COLORS[code] : PALETTE[code % PALETTE.length];
      return { level, code, color, n: counts[code] };
    });
    const shown = isDecision ? items.filter(({ n }) => n > 0).reverse() : items;
    if (counts.missing) shown.push({ level: "no value", code: -1, color: "--missing", n: counts.missing });
    return element("ul", { className: "names" }, shown.map((item) => this.nameItem(item, changed)));
  }

  nameItem({ level, code, color, n }, changed) {
    const swatch = element("span", { className: "swatch" });
    swatch.style.background = color.startsWith("--") ? `var(${color})` : color;
    const button = element("button", { type: "button" }, [swatch, element("span", { className: "level", textContent: level }), element("span", { className: "n", textContent: count(n) })]);
    button.setAttribute("aria-pressed", String(this.highlighted === code && code >= 0));
    button.disabled = code < 0;
    button.addEventListener("click", () => {
      this.highlighted = this.highlighted === code ? -1 : code;
      changed();
    });
    return element("li", {}, [button]);
  }

  scaleParts() {
    const { low, high, unit, isCut } = this.current;
    const stops = Array.from({ length: 11 }, (_, k) => `rgb(${scaleColor(k / 10, isDark()).join(",")})`);
    const bar = element("div", { className: "scale" });
    bar.style.background = `linear-gradient(to right, ${stops.join(",")})`;
    const step = 10 ** (Math.floor(Math.log10(high - low)) - 2);
    const ends = [low, (low + high) / 2, high].map((value) => Math.round(value / step) * step);
    const texts = ends.map((value) => element("span", { textContent: withUnit(value, unit) }));
    const parts = [bar, element("div", { className: "scale-ends" }, texts)];
    if (isCut) parts.push(note("The few rows beyond the ends have the color of the ends."));
    return parts;
  }
}

// How often each code occurs, and how often none does.
function countsOf(codes, nLevels) {
  const counts = Array.from({ length: nLevels }, () => 0);
  counts.missing = 0;
  for (const code of codes) {
    if (code < 0) counts.missing++;
    else counts[code]++;
  }
  return counts;
}

function note(text) {
  return element("p", { className: "explanation small", textContent: text });
}

function grayNote() {
  return element("p", { className: "explanation small gray-note" }, [element("span", { className: "swatch abstained" }), "small and gray: left to a person"]);
}
