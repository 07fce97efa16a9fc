/* The page's own few lines: theme, filter, copying, slices. Nothing here leaves the page. */
(function () {
  "use strict";
  const all = (selector, root) => Array.from((root || document).querySelectorAll(selector));
  const one = (selector, root) => (root || document).querySelector(selector);

  /* ---- light and dark ---- */

  const root = document.documentElement, toggle = one("#theme");
  const systemDark = window.matchMedia("(prefers-color-scheme: dark)");
  const remembered = () => { try { return localStorage.getItem("featlab-theme"); } catch (error) { return null; } };
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : systemDark.matches);
  const said = () => {
    toggle.setAttribute("aria-pressed", String(isDark()));
    toggle.textContent = isDark() ? "Light" : "Dark";
  };
  if (["light", "dark"].includes(remembered())) root.dataset.theme = remembered();
  toggle.hidden = false;
  said();
  systemDark.addEventListener("change", said);
  toggle.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    try { localStorage.setItem("featlab-theme", root.dataset.theme); } catch (error) { /* not remembered, then */ }
    said();
  });

  /* ---- filter ---- */

  const controls = one("#filter");
  if (controls) {
    const search = one("input[type=search]", controls), count = one("output", controls);
    const buttons = all("button[data-show]", controls), rows = all("[data-claim]");
    const total = all("tr[data-claim]").length;
    const apply = () => {
      const wanted = buttons.find((button) => button.getAttribute("aria-pressed") === "true").dataset.show;
      const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
      let shown = 0;
      for (const row of rows) {
        const fits = (wanted === "all" || row.dataset.status === wanted)
          && words.every((word) => row.dataset.search.includes(word));
        row.hidden = !fits;
        if (fits && row.tagName === "TR") shown += 1;
      }
      count.textContent = shown === total ? "" : `${shown} of ${total} shown`;
    };
    for (const button of buttons) {
      button.addEventListener("click", () => {
        for (const other of buttons) other.setAttribute("aria-pressed", String(other === button));
        apply();
      });
    }
    search.addEventListener("input", apply);
    controls.addEventListener("submit", (event) => event.preventDefault());
    controls.hidden = false;
  }

  /* ---- copying ---- */

  for (const button of all("button[data-copy]")) {
    const source = document.getElementById(button.dataset.copy), word = button.textContent;
    const done = (text) => { button.textContent = text; setTimeout(() => { button.textContent = word; }, 1600); };
    const byHand = () => {
      const range = document.createRange();
      range.selectNodeContents(source);
      getSelection().removeAllRanges();
      getSelection().addRange(range);
      done(document.execCommand("copy") ? "Copied" : "Selected");
    };
    button.hidden = false;
    button.addEventListener("click", () => {
      if (navigator.clipboard && window.isSecureContext) {
        navigator.clipboard.writeText(source.textContent).then(() => done("Copied"), byHand);
      } else byHand();
    });
  }

  /* ---- slices ---- */

  const digits = (value) => (value === null ? "–" : String(+value.toPrecision(3)).replace("-", "−"));

  function drawSlice(box) {
    const data = JSON.parse(one("script[type='application/json']", box).textContent);
    const input = one("input[type=range]", box), numbers = data.numbers;
    const panels = all(".curves", box), ending = one(".ending", box);
    const log = data.values.every((value) => value > 0) && data.values.at(-1) > 4 * data.values[0];
    const limits = data.panels.map((panel) => {
      const found = data.curves.flatMap((curve) => panel.names.flatMap((name) => curve[name].flat()));
      return [Math.min(0, ...found.filter((value) => value !== null)), Math.max(...found)];
    });
    const top = Math.max(...data.endings.high, ...data.endings.mean);
    const from = data.steps.findIndex((step) => step > 0); // a logarithmic axis begins after the start
    const after = (list) => list.slice(from);

    function show() {
      const k = Number(input.value), value = data.values[k], above = numbers[k] >= 1;
      const at = `${data.slider} = ${digits(value)}`;
      one(".at", box).textContent = digits(value);
      one(".number", box).textContent = digits(numbers[k]);
      one(".side", box).textContent = above ? data.above : data.below;
      one(".measured", box).textContent = `Measured: ${data.shows} at the end ${digits(data.endings.mean[k])} `
        + `[${digits(data.endings.low[k])}, ${digits(data.endings.high[k])}]`;
      box.dataset.side = above ? "above" : "below";
      input.setAttribute("aria-valuetext", `${at}; the theorem's number is ${digits(numbers[k])}`);
      panels.forEach((element, p) => {
        const panel = data.panels[p];
        const series = panel.names.map((name, i) => {
          const [mean, low, high] = data.curves[k][name].map(after);
          return { name: panel.labels[i], mean, low, high, dash: i + (p ? 3 : 0), theory: false };
        });
        const ends = series.map((s) => `${s.name} ${digits(s.mean.at(-1))}`).join(", ");
        Charts.lines(element, {
          x: after(data.steps), series, xlabel: "step", ylabel: panel.label, logx: true, logy: false,
          ymin: limits[p][0], ymax: limits[p][1], mark: null, title: "", height: 270,
          alt: `${panel.label} against the step at ${at}; at the end ${ends}`,
        });
      });
      const line = { name: data.shows, ...data.endings, dash: 1, theory: false };
      const series = [line];
      if (data.boundary !== null) {
        const b = data.boundary;
        series.push({ name: "boundary", x: [b, b], mean: [0, top], low: null, high: null, dash: 0, theory: true });
      }
      Charts.lines(ending, {
        x: data.values, series, xlabel: data.slider, ylabel: "at the end", logx: log, logy: false,
        ymin: Math.min(0, ...data.endings.low), ymax: top, mark: { x: value, label: "here" }, title: "",
        height: 270,
        alt: `${data.shows} at the end against ${data.slider}: ${digits(data.endings.mean[0])} at `
          + `${digits(data.values[0])}, ${digits(data.endings.mean.at(-1))} at ${digits(data.values.at(-1))}; `
          + `the theorem's boundary is at ${digits(data.boundary)}; chosen: ${at}`,
      });
    }
    one(".live", box).hidden = false;
    input.addEventListener("input", show);
    show();
  }

  // Drawn when they come near: a page of many should open at once.
  const slices = all(".slice");
  if ("IntersectionObserver" in window) {
    const watch = new IntersectionObserver((seen) => {
      for (const entry of seen) {
        if (entry.isIntersecting) { watch.unobserve(entry.target); drawSlice(entry.target); }
      }
    }, { rootMargin: "600px" });
    slices.forEach((box) => watch.observe(box));
  } else slices.forEach(drawSlice);

  window.addEventListener("beforeprint", () => {
    for (const details of all("details")) details.open = true;
  });
})();
