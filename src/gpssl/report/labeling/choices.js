// How a row is answered: a class by a key or a button, a class that nobody has used yet, or a number.

const MOST_KEYS = 9;
const isNumeric = given.kind === "number";
const NUMBER_TYPED = /^[+\-−]?(\d+([.,]\d*)?|[.,]\d+)(e[+-]?\d+)?$/i;

function folded(text) {
  return text.trim().toLocaleLowerCase("en");
}

// The classes as buttons with a key and a bar for what the model thinks; typing narrows them down where there are many.
class Choices {
  constructor(choose) {
    Object.assign(this, { choose, shown: [] });
    byId("find").addEventListener("input", () => this.draw());
    byId("find").addEventListener("keydown", (event) => this.listen(event));
  }

  draw() {
    const all = answers.classes;
    const wanted = folded(byId("find").value);
    byId("find-box").hidden = all.length <= MOST_KEYS;
    this.shown = all.length <= MOST_KEYS ? all : all.filter((name) => folded(name).includes(wanted));
    const hadFocus = document.activeElement?.dataset?.label;
    byId("classes").replaceChildren(...this.shown.map((name, place) => element("li", {}, [this.button(name, place)])));
    if (hadFocus !== undefined) [...byId("classes").querySelectorAll("button")].find((one) => one.dataset.label === hadFocus)?.focus();
    byId("no-class").hidden = this.shown.length > 0 || all.length === 0;
  }

  button(name, place) {
    const chosen = answers.of[answers.current]?.label === name;
    const probability = given.rows[answers.current]?.probabilities?.[given.classes.indexOf(name)];
    const key = place < MOST_KEYS ? String(place + 1) : "";
    const parts = [element("kbd", { textContent: key, hidden: !key }), element("span", { className: "name", textContent: name })];
    const button = element("button", { type: "button", className: "choice" }, parts);
    if (probability !== undefined) button.append(...probabilityParts(probability));
    if (key) button.setAttribute("aria-keyshortcuts", key);
    button.setAttribute("aria-pressed", String(chosen));
    button.dataset.label = name;
    button.addEventListener("click", () => this.choose(name));
    return button;
  }

  byKey(key) {
    return /^[1-9]$/.test(key) ? this.shown[Number(key) - 1] : undefined;
  }

  // In the field: Enter takes the first of the classes that are left, Escape leaves the field.
  listen(event) {
    if (event.key === "Enter" && this.shown.length > 0) {
      event.preventDefault();
      const [first] = this.shown;
      this.clear();
      this.choose(first);
    } else if (event.key === "Escape") {
      this.clear();
      this.draw();
      byId("find").blur();
    }
  }

  clear() {
    byId("find").value = "";
  }
}

function probabilityParts(probability) {
  const bar = element("span", { className: "chance" }, [element("span")]);
  bar.firstChild.style.width = `${100 * probability}%`;
  bar.setAttribute("aria-hidden", "true");
  return [element("span", { className: "n", textContent: share(probability) }), bar];
}

// The class that a typed text names: one that is there, however it is spelled, or a new one; or why it cannot be one.
function namedClass(typed) {
  const text = typed.trim();
  const known = answers.classes.find((name) => folded(name) === folded(text));
  if (known !== undefined) return { label: known };
  if (text === "") return { problem: "Type the name of the class." };
  if (given.noLabel.includes(text)) return { problem: `“${text}” stands for a missing label in a table: give the class another name.` };
  return { label: text };
}

// The number that a typed text is, with a point; or why it is none.
function typedNumber(typed) {
  const text = typed.trim().replace(/\s(?=\d)/g, "");
  if (!NUMBER_TYPED.test(text)) return { problem: text === "" ? "Type a number, or skip the row." : `“${text}” is no number.` };
  return { label: text.replace(",", ".").replace("−", "-") };
}
