// What all pages use: elements, numbers in words, cells of CSV and downloads. User texts reach a page through textContent only.

const given = JSON.parse(document.getElementById("data").textContent);

function byId(id) {
  return document.getElementById(id);
}

// An element with text and properties; children are elements or texts.
function element(tag, properties = {}, children = []) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
}

const SPACE = "\u00a0"; // between number and unit, where no line may break

function count(number) {
  return number.toLocaleString("en-GB");
}

// A share as a percentage, with more digits where it is close to nothing or to everything.
function share(value) {
  if (!Number.isFinite(value)) return "–";
  const percent = 100 * value;
  const margin = Math.min(Math.abs(percent), Math.abs(100 - percent));
  const decimals = margin === 0 || margin >= 10 ? 0 : margin >= 1 ? 1 : 2;
  return Number(percent.toFixed(decimals)) + SPACE + "%";
}

const NUMBER = /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i;

// A text as a CSV cell. Spreadsheets run texts that begin with these signs: an apostrophe keeps them texts.
function textCell(text) {
  const safe = /^[=+\-@\t\r]/.test(text) && !NUMBER.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

function download(name, text) {
  // The mark at the start tells spreadsheets that the file is UTF-8.
  const address = URL.createObjectURL(new Blob(["\ufeff", text], { type: "text/csv;charset=utf-8" }));
  const link = element("a", { href: address, download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 60_000);
}
