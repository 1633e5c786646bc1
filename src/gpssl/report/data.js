// What the report was given, and how numbers, texts and colors are written.

const ARRAYS = { f4: Float32Array, f8: Float64Array, i4: Int32Array, u2: Uint16Array, u1: Uint8Array };

function unpacked(packed) {
  const text = atob(packed.base64);
  const bytes = new Uint8Array(text.length);
  for (let k = 0; k < text.length; k++) bytes[k] = text.charCodeAt(k);
  return new ARRAYS[packed.dtype](bytes.buffer);
}

// A function from a row's position to its text.
function textsOf(column) {
  if (column.texts) return (row) => column.texts[row];
  const codes = unpacked(column.codes);
  return (row) => column.levels[codes[row]];
}

const positions = { x: unpacked(given.points.x), y: unpacked(given.points.y) };
const nRows = positions.x.length;
const rowName = given.points.rows ? textsOf(given.points.rows) : (row) => String(row + 1);
const columns = given.hover.map((column) => ({ name: column.name, text: textsOf(column) }));

const predictions = given.predictions && {
  ...given.predictions,
  text: textsOf(given.predictions.predicted),
  certainty: unpacked(given.predictions.certainty),
  std: given.predictions.std && unpacked(given.predictions.std),
  labeled: unpacked(given.predictions.labeled),
};

function clamped(value, low, high) {
  return Math.min(Math.max(value, low), high);
}

function rows(number) {
  return `${count(number)} row${number === 1 ? "" : "s"}`;
}

function trimmed(number, digits) {
  const size = Math.abs(number);
  const isPlain = size === 0 || (size < 1e7 && size >= 1e-4);
  const text = isPlain ? String(Number(number.toPrecision(digits))) : number.toExponential(digits - 1);
  return text.replaceAll("-", "−");
}

// As many digits as the number has, up to three: for targets, which people chose.
function exactShare(value) {
  return Number((100 * value).toPrecision(3)) + SPACE + "%";
}

// A number with its unit; "%" marks a share.
function withUnit(value, unit, digits = 4) {
  if (!Number.isFinite(value)) return "–";
  if (unit === "%") return share(value);
  return trimmed(value, digits) + (unit ? SPACE + unit : "");
}

// Okabe and Ito's first, which are told apart by all kinds of color vision; the others differ from them in lightness or hue.
const PALETTE = [
  "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7b4fc9", "#a6761d", "#b5bd00", "#882255",
  "#00b5b8", "#cc6677", "#117733", "#4b5bd6", "#ddcc77", "#aa4499", "#44aa99", "#999933", "#6699cc", "#8c564b",
];
const DASHES = ["", "7 4", "2 3", "9 3 2 3"];

// Viridis: lightness grows evenly, in print and for all kinds of color vision.
const VIRIDIS = [
  [68, 1, 84], [71, 39, 119], [62, 73, 137], [48, 103, 141], [37, 130, 142],
  [30, 157, 136], [53, 183, 120], [109, 206, 88], [181, 221, 43], [253, 231, 36],
];

// The part of the scale that stands out from the background.
function scaleEnds(dark) {
  return dark ? [0.2, 1] : [0, 0.93];
}

// Red, green and blue at a share of the scale.
function scaleColor(value, dark) {
  const [low, high] = scaleEnds(dark);
  const place = (low + clamped(value, 0, 1) * (high - low)) * (VIRIDIS.length - 1);
  const below = Math.min(Math.floor(place), VIRIDIS.length - 2);
  return VIRIDIS[below].map((channel, k) => Math.round(channel + (place - below) * (VIRIDIS[below + 1][k] - channel)));
}

function channelsOf(hex) {
  return [1, 3, 5].map((start) => parseInt(hex.slice(start, start + 2), 16));
}

// A pixel of a canvas: alpha, blue, green, red from the highest byte down.
function pixel([red, green, blue]) {
  return ((255 << 24) | (blue << 16) | (green << 8) | red) >>> 0;
}

function cssColor(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}
