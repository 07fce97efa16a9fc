/* A setting: which parts are trained and with which numbers, as flat dotted keys; and the link that holds it. */

export const SECTIONS = ["data", "network", "objective", "algorithm"];
const NOT_GIVEN = ""; // in a link: a field that the theorem's setting has and this one has not

/* Steps and seeds belong to no part. */
function runFields({ steps, limits }) {
  const seeds = { name: "seeds", symbol: "seeds", words: "runs, each with its own draw", kind: "whole", value: 4,
    low: 1, high: limits.seeds, log: false };
  return [steps, seeds];
}

/* The fields of a kind of part, those of the chosen activation after it: [{key, section, field}]. */
function fieldsOfKind(catalogue, section, kind, setting) {
  const found = [], { fields } = catalogue.kinds[section][kind] || { fields: [] };
  const functions = fields.filter((field) => field.kind === "activation").map((field) => `${field.name}.`);
  for (const field of fields) {
    if (functions.some((start) => field.name.startsWith(start))) continue; // not the chosen activation's
    const key = `${section}.${field.name}`, phase = /^(first|second)\./.exec(field.name);
    found.push({ key, section, field: phase ? { ...field, words: `${field.words}, ${phase[1]} phase` } : field });
    if (field.kind !== "activation") continue;
    const inner = catalogue.kinds.activation[setting[key] || field.value] || { fields: [] };
    for (const deeper of inner.fields) found.push({ key: `${key}.${deeper.name}`, section, field: deeper });
  }
  return found;
}

/* All fields of a setting, in the order of its parts. */
export function fieldsOf(catalogue, setting) {
  const found = SECTIONS.flatMap((section) => fieldsOfKind(catalogue, section, setting[section], setting));
  for (const field of runFields(catalogue)) found.push({ key: field.name, section: "run", field });
  return found;
}

export function claimOf(catalogue, setting) {
  return catalogue.claims.find((claim) => claim.id === setting.claim) || null;
}

/* What a field begins with; one that must be given and has no usual value begins in the middle of its slider. */
export function usualValue(catalogue, { kind, value, low, high, log }) {
  if (value !== null && value !== undefined) return value;
  if (kind === "activation") return Object.keys(catalogue.kinds.activation)[0];
  if (kind === "flag") return false;
  if (!Number.isFinite(low) || !Number.isFinite(high)) return null;
  const middle = log && low > 0 ? Math.sqrt(low * high) : (low + high) / 2;
  return kind === "whole" ? Math.round(middle) : Number(middle.toPrecision(2));
}

/* A setting with nothing left over from other parts, and with the usual value of every field it lacks. */
export function complete(catalogue, setting) {
  const kept = { claim: setting.claim || "" }, own = (claimOf(catalogue, setting) || { setting: {} }).setting;
  for (const section of SECTIONS) {
    const kinds = Object.keys(catalogue.kinds[section]), kind = setting[section];
    kept[section] = kinds.includes(kind) || kind === own[section] ? kind : kinds[0];
  }
  for (const section of SECTIONS) {
    for (const { key, field } of fieldsOfKind(catalogue, section, kept[section], setting)) {
      const usual = usualValue(catalogue, field);
      if (key in setting) kept[key] = setting[key];
      else if (!field.optional && usual !== null) kept[key] = usual;
    }
  }
  for (const field of runFields(catalogue)) kept[field.name] = setting[field.name] || field.value;
  return kept;
}

/* The theorem's own setting; where there is no such theorem, `from` without one. */
export function settingOf(catalogue, claimId, from) {
  const claim = catalogue.claims.find((one) => one.id === claimId);
  return complete(catalogue, claim ? { ...claim.setting, claim: claim.id } : { ...from, claim: "" });
}

/* A task of one's own of these parts: given fields keep their values, the rest begin at their usual ones. */
export function ownTask(catalogue, given) {
  const next = complete(catalogue, { ...given, claim: "" });
  for (const { key, field } of fieldsOf(catalogue, next)) {
    if (!(key in next) && field.optional && field.value !== null) next[key] = field.value;
  }
  return next;
}

/* The two fields of the phase diagram, if there is one: the theorem's, or the signal and n. */
export function planeOf(catalogue, setting) {
  const claim = claimOf(catalogue, setting);
  if (claim) return claim.has_diagram ? [claim.slider, claim.across] : null;
  const signal = ["data.snr", "data.signal_norm"].find((key) => key in setting);
  return signal && "data.n" in setting ? [signal, "data.n"] : null;
}

/* ---- the link ---- */

export function parameters(setting) {
  return new URLSearchParams(Object.entries(setting).map(([key, value]) => [key, String(value)]));
}

/* What follows the # of the page's address: the fields that differ from the theorem's own. */
export function linkOf(catalogue, setting) {
  const kinds = Object.fromEntries(SECTIONS.map((section) => [section, setting[section]]));
  const claim = claimOf(catalogue, setting);
  const own = claim ? settingOf(catalogue, claim.id) : ownTask(catalogue, kinds);
  const changed = claim ? new URLSearchParams({ claim: claim.id }) : parameters(setting);
  for (const [key, value] of Object.entries(setting)) if (own[key] !== value) changed.set(key, String(value));
  for (const key of Object.keys(own)) if (!(key in setting)) changed.set(key, NOT_GIVEN);
  return changed.toString();
}

function fromText(text) {
  if (text === "true" || text === "false") return text === "true";
  const number = Number(text);
  return text.trim() !== "" && Number.isFinite(number) ? number : text;
}

/* The setting of a link; `null` where the link names none. */
export function settingOfLink(catalogue, hash) {
  const given = new URLSearchParams(hash.replace(/^#/, ""));
  if (!given.has("claim") && !given.has("data")) return null;
  const kinds = Object.fromEntries(SECTIONS.map((section) => [section, given.get(section)]));
  const setting = given.get("claim") ? settingOf(catalogue, given.get("claim"), kinds) : ownTask(catalogue, kinds);
  for (const [key, text] of given) {
    if (key === "claim") continue;
    if (text === NOT_GIVEN) delete setting[key];
    else setting[key] = fromText(text);
  }
  return complete(catalogue, setting);
}

/* ---- which fields are shown where ---- */

const FIRST = [
  "n", "d", "snr", "signal_norm", "power", "learning_rate", "pace", "label_flip", "flip", "radius", "width",
];
const AT_MOST = 6; // large sliders

/* The theorem's own two sliders, then what the papers speak of first; the rest goes under "more". */
export function arranged(catalogue, setting) {
  const claim = claimOf(catalogue, setting);
  const hidden = new Set(claim ? claim.hidden || [] : []);
  const all = fieldsOf(catalogue, setting).filter(({ key }) => !hidden.has(key));
  const leading = claim ? [claim.slider, claim.across].filter(Boolean) : [];
  const rank = ({ key, field }) => {
    if (leading.includes(key)) return leading.indexOf(key);
    if (field.kind === "flag" || field.kind === "activation" || !(key in setting)) return Infinity;
    const place = FIRST.indexOf(field.name.replace(/.*\./, ""));
    return place < 0 ? Infinity : leading.length + place;
  };
  const main = all.filter((one) => rank(one) < Infinity).sort((a, b) => rank(a) - rank(b)).slice(0, AT_MOST);
  const rest = all.filter((one) => !main.includes(one));
  return { main, rest, leading };
}

/* A slider reaches its theorem's own value, and on both sides of it. */
export function reaching(field, value) {
  if (typeof value !== "number" || !(value < field.low || value > field.high)) return field;
  const room = field.log && value > 0 ? 10 : 1;
  return { ...field, low: Math.min(field.low, value / room), high: Math.max(field.high, value * room) };
}
