/* Text with formulas, as a typesetter would set it. */

import { make } from "./controls.js";

const GREEK = {
  alpha: "α", beta: "β", gamma: "γ", epsilon: "ε", eta: "η", theta: "θ", kappa: "κ", lambda: "λ", mu: "μ", xi: "ξ",
  rho: "ρ", sigma: "σ", tau: "τ", phi: "φ", psi: "ψ",
};
const SIGNS = [[/->/g, "→"], [/<</g, "≪"], [/>>/g, "≫"], [/<=/g, "≤"], [/>=/g, "≥"], [/\bsqrt ?(?=[\w(])/g, "√"]];
const NAMES = new RegExp(`(?<![A-Za-z])(${Object.keys(GREEK).join("|")})(?![A-Za-z])`, "g");
const RAISED = /\^(-?(?:\([^()]*\)|\w+))/, LOWERED = /(?<=(?<![A-Za-zα-ω])[A-Za-zα-ω])_([A-Za-z0-9]{1,2})(?!\w)/;
const HIGH_OR_LOW = new RegExp(`${RAISED.source}|${LOWERED.source}`);

/* Plain text: Greek letters by their names, n^2 raised, x_0 lowered. */
export function typeset(element, text) {
  let plain = String(text || "").replace(NAMES, (name) => GREEK[name]);
  for (const [sign, better] of SIGNS) plain = plain.replace(sign, better);
  const pieces = plain.split(HIGH_OR_LOW); // text, raised, lowered, text, ...
  const bare = (piece) => piece.replace(/^\((.*)\)$/, "$1").replace("-", "−");
  const tags = [null, "sup", "sub"];
  const nodes = pieces.map((piece, i) => (i % 3 && piece ? make(tags[i % 3], {}, bare(piece)) : piece));
  element.replaceChildren(...nodes.filter(Boolean));
}

/* A sentence's first letter is a capital, unless it is a symbol such as n. */
export const capital = (text) => String(text || "").replace(/^(?:a(?= [a-z])|[a-z](?=[a-z]))/, (letter) => letter.toUpperCase());

/* A formula comes as MathML that the server made; anything else is text. */
export function formula(element, markup) {
  if (!/^<math[\s>]/.test(markup || "")) return typeset(element, markup);
  const template = document.createElement("template");
  template.innerHTML = markup;
  element.replaceChildren(template.content);
}

/* Paragraphs: text, or lists of pieces each of which is text or a formula. */
export function prose(element, words) {
  const paragraphs = Array.isArray(words) ? words : String(words || "").split(/\n\s*\n/).filter(Boolean);
  element.replaceChildren(...paragraphs.map((paragraph) => make("p", {}, ...[].concat(paragraph).map((piece) => {
    const span = make("span");
    formula(span, piece);
    return span;
  }))));
}
