/* One control a field: a slider and a number in step, a tick, or a choice. */

const NOTCHES = 300;
const BEYOND = 12; // notches past the end that mean infinity
const TYPING = 400; // ms after the last key before a typed number counts
let names = 0;

export function make(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name in node && name !== "list") node[name] = value;
    else node.setAttribute(name, value);
  }
  node.append(...children);
  return node;
}

/* A number as one types it: 0.05, 1500, 1e9. */
export function typed(value) {
  if (value === "inf" || value === Infinity) return "∞";
  if (typeof value !== "number") return "";
  const size = Math.abs(value), exact = Number.isInteger(value) && size < 1e6;
  const short = exact ? value : Number(value.toPrecision(4));
  const powers = size !== 0 && (size >= 1e6 || size < 1e-4);
  return powers ? short.toExponential().replace("e+", "e") : String(short);
}

/* What was typed, or null where it is no number. */
export function read(text, whole) {
  const bare = text.trim().replace(/,(?=\d{3})/g, "").replace(/^10\^/, "1e");
  if (/^(inf|infinity|∞)$/i.test(bare)) return "inf";
  const value = bare === "" ? NaN : Number(bare);
  if (!Number.isFinite(value) || (whole && value !== Math.round(value))) return null;
  return value;
}

/* How a slider's notch and a value belong together. */
function notches(field, endless) {
  const low = Number.isFinite(field.low) ? field.low : field.log ? 1e-3 : 0;
  const high = Number.isFinite(field.high) ? field.high : field.log ? low * 1e6 : low + 1;
  const whole = field.kind === "whole", log = field.log && low > 0;
  const each = whole && !log && high - low <= NOTCHES;
  const last = each ? high - low : NOTCHES;
  const valueAt = (notch) => {
    if (endless && notch > last) return "inf";
    const part = notch / last, value = log ? low * (high / low) ** part : low + (high - low) * part;
    return whole && value < 1e3 ? Math.round(value) : Number(value.toPrecision(3));
  };
  const notchOf = (value) => {
    if (value === "inf") return last + BEYOND;
    const inside = Math.min(high, Math.max(low, value));
    const part = log ? Math.log(inside / low) / Math.log(high / low) : (inside - low) / (high - low);
    return Math.round(last * part);
  };
  return { last: endless ? last + BEYOND : last, valueAt, notchOf };
}

/* A slider with a number beside it. `changed(value)` hears of every new value, `undefined` for "not given". */
function sliderFor({ key, field }, value, changed, large) {
  const id = `field-${(names += 1)}`, whole = field.kind === "whole";
  const endless = field.high === "inf" || field.high === null || value === "inf";
  const scale = notches(field, endless);
  const spoken = `${field.symbol}, ${field.words}`;
  const slider = make("input", { type: "range", min: 0, max: scale.last, step: 1, className: "range" });
  slider.setAttribute("aria-label", spoken);
  slider.dataset.key = key;
  const number = make("input", { type: "text", inputMode: "decimal", id, className: "typed" });
  number.autocomplete = "off";
  number.dataset.key = key;
  const symbol = make("span", { className: "symbol" }, field.symbol || field.name);
  const meaning = make("span", { className: "field-words" }, field.words || "");
  const label = make("label", { htmlFor: id }, symbol, meaning);
  const row = make("div", { className: "field-row" }, label, number);
  const element = make("div", { className: large ? "field large" : "field" }, row);
  element.append(slider);

  let given = null, current = value;
  if (field.optional) {
    given = make("input", { type: "checkbox", className: "given" });
    given.setAttribute("aria-label", `give a value: ${spoken}`);
    row.prepend(given);
    given.addEventListener("change", () => {
      const start = typeof field.value === "number" ? field.value : scale.valueAt(Math.round(NOTCHES / 2));
      show(given.checked ? start : undefined);
      changed(current);
    });
  }

  function show(next, from) {
    current = next;
    const there = next !== undefined;
    if (given) given.checked = there;
    slider.disabled = number.disabled = !there;
    if (!there) { number.value = ""; return; }
    if (from !== slider) slider.value = scale.notchOf(next);
    if (from !== number) number.value = typed(next);
    slider.setAttribute("aria-valuetext", typed(next));
    slider.style.setProperty("--part", `${(100 * slider.value) / scale.last}%`);
    number.removeAttribute("aria-invalid");
  }

  slider.addEventListener("input", () => {
    const next = scale.valueAt(Number(slider.value));
    if (next === current) return slider.style.setProperty("--part", `${(100 * slider.value) / scale.last}%`);
    show(next, slider);
    changed(next);
  });
  let typing = null;
  const take = () => {
    clearTimeout(typing);
    const next = read(number.value, whole);
    if (next === null) return number.setAttribute("aria-invalid", "true");
    const other = next !== current;
    show(next, number);
    if (other) changed(next);
  };
  number.addEventListener("input", () => { clearTimeout(typing); typing = setTimeout(take, TYPING); });
  number.addEventListener("change", () => { take(); show(current); });
  show(value);
  return { key, element, show: (next) => { if (next !== current) show(next); } };
}

function tickFor({ key, field }, value, changed) {
  const tick = make("input", { type: "checkbox", checked: Boolean(value) });
  tick.dataset.key = key;
  tick.addEventListener("change", () => changed(tick.checked));
  const element = make("label", { className: "field tick" }, tick, ` ${field.words || field.name}`);
  return { key, element, show: (next) => { tick.checked = Boolean(next); } };
}

/* A choice among kinds: {name: {words}}. */
export function choiceFor(key, title, kinds, value, changed) {
  const select = make("select", { id: `field-${(names += 1)}` });
  select.dataset.key = key;
  for (const [name, kind] of Object.entries(kinds)) {
    select.append(make("option", { value: name, title: kind.words || "" }, name));
  }
  const words = make("p", { className: "field-words" });
  const show = (next) => { select.value = next; words.textContent = (kinds[next] || {}).words || ""; };
  select.addEventListener("change", () => { show(select.value); changed(select.value); });
  const label = make("label", { htmlFor: select.id }, title);
  const element = make("div", { className: "field choice" }, label, select, words);
  show(value);
  return { key, element, show };
}

export function controlFor(entry, value, kinds, changed, large) {
  if (entry.field.kind === "flag") return tickFor(entry, value, changed);
  if (entry.field.kind === "activation") {
    return choiceFor(entry.key, entry.field.words || "activation", kinds.activation, value, changed);
  }
  return sliderFor(entry, value, changed, large);
}
