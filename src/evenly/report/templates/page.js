"use strict";
(() => {
  const given = JSON.parse(document.getElementById("data").textContent);
  const root = document.documentElement;
  const system = window.matchMedia("(prefers-color-scheme: dark)");
  const touch = window.matchMedia("(pointer: coarse)").matches;
  // Where nothing hovers a toolbar would lie on the chart for good; on a narrow screen it would cover it.
  const bare = window.matchMedia("(pointer: coarse), (hover: none), (max-width: 600px)");
  const drawn = new Set();
  const PAPER = 640; // pixels: what A4 and Letter leave of a chart beside their margins and the chart's own

  // A page opened from a file may be denied any storage: then the choice lasts as long as the page.
  const remembered = {
    read() { try { return localStorage.getItem("evenly-theme"); } catch { return null; } },
    write(value) { try { localStorage.setItem("evenly-theme", value); } catch { /* not kept */ } },
  };

  const theme = () => root.dataset.theme || (system.matches ? "dark" : "light");

  function paint(name, more = {}) {
    for (const id of drawn) Plotly.relayout(id, { ...given.themes[name], ...more });
  }

  function layoutOf(made) {
    const layout = structuredClone(made.layout);
    for (const [path, value] of Object.entries(given.themes[theme()])) {
      const steps = path.split(".");
      const last = steps.pop();
      steps.reduce((inner, step) => (inner[step] ??= {}), layout)[last] = value;
    }
    // A finger that scrolls the page must not zoom the chart.
    layout.dragmode = touch ? false : "zoom";
    return layout;
  }

  const configOf = (made) => (bare.matches ? { ...made.config, displayModeBar: false } : made.config);

  function draw(id) {
    if (drawn.has(id) || !given.plots[id]) return;
    const made = given.plots[id];
    drawn.add(id);
    Plotly.newPlot(id, made.data, layoutOf(made), configOf(made));
  }

  function watch() {
    const near = new IntersectionObserver((entries) => {
      for (const entry of entries) if (entry.isIntersecting) { near.unobserve(entry.target); draw(entry.target.id); }
    }, { rootMargin: "400px" });
    for (const id of Object.keys(given.plots)) near.observe(document.getElementById(id));
  }

  function filters(gallery) {
    const choice = gallery.querySelector(".class-filter");
    const suspects = gallery.querySelector(".suspect-filter");
    const shelves = [...gallery.querySelectorAll(".shelf")];
    const count = gallery.querySelector(".count");
    const apply = () => {
      let shown = 0;
      for (const shelf of shelves) {
        let own = 0;
        for (const item of shelf.querySelectorAll("li")) {
          item.hidden = suspects.checked && !item.classList.contains("suspect");
          own += !item.hidden;
        }
        shelf.hidden = (choice.value !== "" && shelf.dataset.shelf !== choice.value) || (suspects.checked && !own);
        if (!shelf.hidden) shown += own;
      }
      count.textContent = shown === 1 ? "1 example" : `${shown} examples`;
    };
    choice.addEventListener("change", apply);
    suspects.addEventListener("change", apply);
    suspects.closest("label").hidden = !gallery.querySelector(".suspect");
    apply();
  }

  const before = {};
  async function refresh() {
    const status = document.querySelector(".live");
    try {
      const answer = await fetch(given.live, { cache: "no-store" });
      if (!answer.ok) throw new Error(answer.statusText);
      const now = await answer.json();
      const places = (content) => Object.keys(content.plots).join() + "|" + content.sections.join();
      if (places(now) !== places({ plots: given.plots, sections: [...document.querySelectorAll(".part")].map((p) => p.id) })) {
        location.reload();
        return;
      }
      document.getElementById("headline").innerHTML = now.headline;
      for (const [id, html] of Object.entries(now.blocks)) {
        const old = document.getElementById(id);
        // What has not changed keeps its place: a table that is being scrolled, a listing that is open.
        if (old && html !== before[id]) old.outerHTML = html;
        before[id] = html;
      }
      for (const [id, made] of Object.entries(now.plots)) {
        given.plots[id] = made;
        if (drawn.has(id)) Plotly.react(id, made.data, layoutOf(made), configOf(made));
      }
      status.textContent = now.state;
      status.classList.remove("lost");
      if (now.over) return;
    } catch {
      status.textContent = "the server does not answer";
      status.classList.add("lost");
    }
    setTimeout(refresh, 2000);
  }

  const stored = remembered.read();
  if (stored === "light" || stored === "dark") root.dataset.theme = stored;
  document.getElementById("theme").addEventListener("click", () => {
    root.dataset.theme = theme() === "dark" ? "light" : "dark";
    remembered.write(root.dataset.theme);
    paint(theme());
  });
  system.addEventListener("change", () => paint(theme()));
  // Paper is white, narrow, and has no scrolling: everything is drawn and open, in the light theme and a page's width.
  const closed = [];
  window.addEventListener("beforeprint", () => {
    Object.keys(given.plots).forEach(draw);
    paint("light", { width: PAPER, autosize: false });
    for (const part of document.querySelectorAll("details:not([open])")) { part.open = true; closed.push(part); }
  });
  window.addEventListener("afterprint", () => {
    paint(theme(), { width: null, autosize: true });
    for (const part of closed.splice(0)) part.open = false;
  });
  for (const button of document.querySelectorAll(".copy")) {
    button.addEventListener("click", async () => {
      try {
        await navigator.clipboard.writeText(document.getElementById(button.dataset.copy).textContent);
        button.textContent = "Copied";
      } catch {
        getSelection().selectAllChildren(document.getElementById(button.dataset.copy));
        button.textContent = "Selected";
      }
      setTimeout(() => { button.textContent = "Copy"; }, 1500);
    });
  }
  // Each word of the command for itself, so that a line does not end within a flag; its text stays as it is.
  const command = document.getElementById("command");
  if (command) {
    const words = command.textContent.split(" ").map((text) => Object.assign(document.createElement("span"), { textContent: text }));
    command.replaceChildren(...words.flatMap((word, i) => (i ? [" ", word] : [word])));
  }
  document.querySelectorAll(".gallery").forEach(filters);
  watch();
  if (given.live) setTimeout(refresh, 2000);
})();
