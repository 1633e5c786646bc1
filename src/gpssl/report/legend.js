// Colours of the points, and the legend that explains them.

const MOST_LEVELS = 200; // in a legend
const DECISION_COLOURS = ["--abstained", PALETTE[0], PALETTE[4]];

class Colours {
  constructor(decisions) {
    Object.assign(this, { decisions, all: given.colourings, chosen: 0, highlighted: -1 });
    for (const colouring of this.all) {
      if (colouring.kind === "class") this.prepareClasses(colouring, unpacked(colouring.codes));
      if (colouring.kind === "number") this.prepare(colouring, unpacked(colouring.values));
    }
  }

  prepareClasses(colouring, codes) {
    Object.assign(colouring, { codes, counts: countsOf(codes, colouring.levels.length) });
  }

  // The scale spans all but the outermost hundredths, so that one odd row does not take all the colours.
  prepare(colouring, values) {
    const finite = values.filter(Number.isFinite).sort();
    const at = (part) => finite[Math.round(part * (finite.length - 1))] ?? 0;
    const [low, high] = [at(0.01), at(0.99)];
    Object.assign(colouring, { values, low, high: high > low ? high : low + 1, isCut: at(0) < low || at(1) > high });
  }

  get current() {
    return this.all[this.chosen];
  }

  // Pixel colours and layers of all rows.
  look() {
    const colours = new Uint32Array(nRows);
    const layers = new Uint8Array(nRows).fill(PLAIN);
    const colourAt = this.current ? this[this.current.kind]() : () => pixel(channelsOf(PALETTE[0]));
    const grey = pixel(channelsOf(cssColour("--abstained")));
    const state = this.decisions?.controls ? this.decisions.state : null;
    const alone = this.highlighted < 0 ? null : this.current.kind === "decision" ? state : this.current.codes;
    for (let row = 0; row < nRows; row++) {
      const isDimmed = (state !== null && state[row] === ABSTAINED) || (alone !== null && alone[row] !== this.highlighted);
      colours[row] = isDimmed ? grey : colourAt(row);
      if (isDimmed) layers[row] = DIMMED;
    }
    return [colours, layers];
  }

  class() {
    const { codes } = this.current;
    const palette = PALETTE.map((colour) => pixel(channelsOf(colour)));
    const missing = pixel(channelsOf(cssColour("--missing")));
    return (row) => (codes[row] < 0 ? missing : palette[codes[row] % palette.length]);
  }

  number() {
    const { values, low, high } = this.current;
    const missing = pixel(channelsOf(cssColour("--missing")));
    const scale = Array.from({ length: 256 }, (_, k) => pixel(scaleColour(k / 255, isDark())));
    return (row) => {
      const place = (values[row] - low) / (high - low);
      return Number.isNaN(place) ? missing : scale[Math.round(255 * clamped(place, 0, 1))];
    };
  }

  decision() {
    const palette = DECISION_COLOURS.map((colour) => pixel(channelsOf(colour.startsWith("--") ? cssColour(colour) : colour)));
    return (row) => palette[this.decisions.state[row]];
  }

  // What the current colouring says of a row, as a name and a text; null where the row's other lines say it already.
  lineFor(row) {
    if (!this.current || this.current.kind === "decision") return null;
    const { kind, name, codes, levels, values, unit } = this.current;
    if (kind === "class") return [name, codes[row] < 0 ? "no value" : levels[codes[row]]];
    return [name, Number.isNaN(values[row]) ? "no value" : withUnit(values[row], unit)];
  }

  drawLegend(changed) {
    byId("colour-explanation").textContent = this.current.explanation;
    const parts = this.current.kind === "number" ? this.scaleParts() : [this.names(changed)];
    if (this.current.kind === "class" && this.current.levels.length > PALETTE.length) {
      parts.push(note(`More than ${PALETTE.length} classes: colours repeat. Click on a class to see it alone.`));
    } else if (this.current.kind === "class") {
      parts.push(element("p", { className: "explanation small no-print", textContent: "Click on a class to see it alone." }));
    }
    if (this.decisions?.controls && this.current.kind !== "decision") parts.push(greyNote());
    byId("legend").replaceChildren(...parts);
  }

  names(changed) {
    const isDecision = this.current.kind === "decision";
    const levels = isDecision ? DECISION_NAMES : this.current.levels.slice(0, MOST_LEVELS);
    const counts = isDecision ? countsOf(this.decisions.state, levels.length) : this.current.counts;
    const items = levels.map((level, code) => {
      const colour = isDecision ? DECISION_COLOURS[code] : PALETTE[code % PALETTE.length];
      return { level, code, colour, n: counts[code] };
    });
    const shown = isDecision ? items.filter(({ n }) => n > 0).reverse() : items;
    if (counts.missing) shown.push({ level: "no value", code: -1, colour: "--missing", n: counts.missing });
    return element("ul", { className: "names" }, shown.map((item) => this.nameItem(item, changed)));
  }

  nameItem({ level, code, colour, n }, changed) {
    const swatch = element("span", { className: "swatch" });
    swatch.style.background = colour.startsWith("--") ? `var(${colour})` : colour;
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
    const stops = Array.from({ length: 11 }, (_, k) => `rgb(${scaleColour(k / 10, isDark()).join(",")})`);
    const bar = element("div", { className: "scale" });
    bar.style.background = `linear-gradient(to right, ${stops.join(",")})`;
    const step = 10 ** (Math.floor(Math.log10(high - low)) - 2);
    const ends = [low, (low + high) / 2, high].map((value) => Math.round(value / step) * step);
    const texts = ends.map((value) => element("span", { textContent: withUnit(value, unit) }));
    const parts = [bar, element("div", { className: "scale-ends" }, texts)];
    if (isCut) parts.push(note("The few rows beyond the ends have the colour of the ends."));
    return parts;
  }
}

// How often each code occurs, and how often none does.
function countsOf(codes, nLevels) {
  const counts = new Array(nLevels).fill(0);
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

function greyNote() {
  return element("p", { className: "explanation small grey-note" }, [element("span", { className: "swatch abstained" }), "small and grey: left to a person"]);
}
