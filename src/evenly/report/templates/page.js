"use strict";
(() => {
  const given = JSON.parse(document.getElementById("data").textContent);
  const root = document.documentElement;
  const system = window.matchMedia("(prefers-color-scheme: dark)");
  const drawn = new Map(); // the width in which each chart was drawn, by its id
  const PAPER = 460; // pixels: a chart is drawn in this width for paper and scaled to its column

  // A page opened from a file may be denied any storage: then the choice lasts as long as the page.
  const remembered = {
    read() { try { return localStorage.getItem("evenly-theme"); } catch { return null; } },
    write(value) { try { localStorage.setItem("evenly-theme", value); } catch { /* not kept */ } },
  };
  const theme = () => root.dataset.theme || (system.matches ? "dark" : "light");

  function draw(id, width) {
    const element = document.getElementById(id);
    if (!element || (!width && !element.clientWidth)) return;
    drawn.set(id, element.clientWidth);
    Chart.draw(element, given.plots[id], width);
  }

  const near = new IntersectionObserver((entries) => {
    for (const entry of entries) if (entry.isIntersecting) { near.unobserve(entry.target); draw(entry.target.id); }
  }, { rootMargin: "400px" });
  const resized = new ResizeObserver((entries) => {
    for (const { target } of entries) {
      if (drawn.has(target.id) && target.clientWidth && drawn.get(target.id) !== target.clientWidth) draw(target.id);
    }
  });

  function watch() {
    for (const id of Object.keys(given.plots)) {
      near.observe(document.getElementById(id));
      resized.observe(document.getElementById(id));
    }
  }

  function filterGallery(gallery) {
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

  // All pictures of a gallery are one stop of the keyboard: arrow keys go from one to the next, Enter enlarges.
  function enlargeGallery(gallery) {
    const pictures = [...gallery.querySelectorAll(".enlarge")];
    if (pictures.length) pictures[0].tabIndex = 0;
    gallery.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      const seen = pictures.filter((picture) => picture.offsetParent);
      const at = seen.indexOf(document.activeElement);
      if (!step || at < 0) return;
      event.preventDefault();
      const next = seen[Math.min(Math.max(at + step, 0), seen.length - 1)];
      for (const picture of pictures) picture.tabIndex = picture === next ? 0 : -1;
      next.focus();
    });
    gallery.addEventListener("click", (event) => {
      const picture = event.target.closest(".enlarge");
      if (picture) enlarge(picture);
    });
  }

  const dialog = document.querySelector("dialog.large");
  function enlarge(picture) {
    const image = picture.querySelector("img");
    dialog.querySelector("img").src = image.src;
    dialog.querySelector("img").alt = image.alt;
    const rows = (picture.dataset.details ?? "").split("\n").filter(Boolean).map((line) => line.split("\t"));
    dialog.querySelector("dl").replaceChildren(...rows.flatMap(([term, words]) => [
      Object.assign(document.createElement("dt"), { textContent: term }),
      Object.assign(document.createElement("dd"), { textContent: words }),
    ]));
    dialog.showModal();
  }
  dialog.addEventListener("click", (event) => {
    if (event.target === dialog || event.target.closest(".close")) dialog.close();
  });

  // The number at the beginning of a cell, times in seconds: "−1.20 [−2, 0]", "16,540", "5.0 h"; NaN of other words.
  const SECONDS = { s: 1, min: 60, h: 3600, days: 86400, years: 31536000 };
  function quantity(text) {
    const plain = text.replaceAll("−", "-").replaceAll(",", "");
    const found = /^([+-]?[0-9.]+(?:e[+-]?[0-9]+)?)(?: (s|min|h|days|years))?(?=$|[ %×])/.exec(plain);
    return found ? Number(found[1]) * (SECONDS[found[2]] ?? 1) : NaN;
  }

  function sortable(block) {
    const table = block.querySelector("table");
    const body = table.tBodies[0];
    const rows = [...body.rows];
    const words = (row, column) => row.cells[column].textContent.trim();
    const selects = [...block.querySelectorAll("select[data-column]")];
    const find = block.querySelector(".find");
    const count = block.querySelector(".count");
    for (const select of selects) {
      for (const value of [...new Set(rows.map((row) => words(row, select.dataset.column)))].sort()) select.add(new Option(value, value));
    }
    const apply = () => {
      const sought = find.value.trim().toLowerCase();
      for (const row of rows) {
        row.hidden = selects.some((s) => s.value && words(row, s.dataset.column) !== s.value) ||
          (sought && !row.textContent.toLowerCase().includes(sought));
      }
      count.textContent = `${rows.filter((row) => !row.hidden).length} of ${rows.length}`;
    };
    for (const select of selects) select.addEventListener("change", apply);
    find.addEventListener("input", apply);
    [...table.tHead.rows[0].cells].forEach((head, column) => {
      const button = Object.assign(document.createElement("button"), { type: "button", className: "sort", textContent: head.textContent });
      head.replaceChildren(button);
      button.addEventListener("click", () => {
        const down = head.ariaSort === "ascending";
        for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
        head.ariaSort = down ? "descending" : "ascending";
        const order = (a, b) => {
          const [x, y] = [words(a, column), words(b, column)];
          const [m, n] = [quantity(x), quantity(y)];
          if (Number.isNaN(m) !== Number.isNaN(n)) return Number.isNaN(m) ? 1 : -1;
          return Number.isNaN(m) ? x.localeCompare(y, "en", { numeric: true }) : m - n;
        };
        body.append(...[...body.rows].sort((a, b) => (down ? order(b, a) : order(a, b))));
      });
    });
    apply();
  }

  function chooser(block) {
    const choose = block.querySelector(".choose");
    choose.addEventListener("change", () => {
      for (const choice of block.querySelectorAll(":scope > .choice")) choice.hidden = choice.dataset.choice !== choose.value;
    });
  }

  async function copy(button) {
    const text = document.getElementById(button.dataset.copy);
    try {
      await navigator.clipboard.writeText(text.textContent);
      button.textContent = "Copied";
    } catch {
      getSelection().selectAllChildren(text);
      button.textContent = "Selected";
    }
    setTimeout(() => { button.textContent = "Copy"; }, 1500);
  }

  // Each word of a command for itself, so that a line does not end within a flag; its text stays as it is.
  function keepWords() {
    for (const command of document.querySelectorAll(".command code:not(:has(span))")) {
      const words = command.textContent.split(" ").map((text) => Object.assign(document.createElement("span"), { textContent: text }));
      command.replaceChildren(...words.flatMap((word, i) => (i ? [" ", word] : [word])));
    }
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
      for (const [id, html] of Object.entries({ ...now.leads, ...now.blocks })) {
        const old = document.getElementById(id);
        // What has not changed keeps its place: a table that is being scrolled, a listing that is open.
        if (old && html !== before[id]) {
          old.outerHTML = html;
          const made = document.getElementById(id);
          if (made.matches(".sortable")) sortable(made);
        }
        before[id] = html;
      }
      keepWords();
      for (const [id, { text, label, csv }] of Object.entries(now.captions)) {
        const canvas = document.getElementById(id);
        canvas.ariaLabel = label;
        canvas.parentElement.querySelector("figcaption").innerHTML = text;
        canvas.parentElement.querySelector(".csv").href = csv;
      }
      for (const [id, made] of Object.entries(now.plots)) {
        if (JSON.stringify(made) === JSON.stringify(given.plots[id])) continue;
        given.plots[id] = made;
        if (drawn.has(id)) draw(id);
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
  });
  // Paper has no scrolling: every chart is drawn, in the width of a column.
  window.addEventListener("beforeprint", () => Object.keys(given.plots).forEach((id) => draw(id, PAPER)));
  window.addEventListener("afterprint", () => Object.keys(given.plots).forEach((id) => draw(id)));
  document.addEventListener("click", (event) => {
    const button = event.target.closest(".copy");
    if (button) copy(button);
  });
  document.querySelectorAll(".gallery").forEach((gallery) => { filterGallery(gallery); enlargeGallery(gallery); });
  document.querySelectorAll(".sortable").forEach(sortable);
  keepWords();
  document.querySelectorAll(".switch").forEach(chooser);
  watch();
  if (given.live) setTimeout(refresh, 2000);
})();
