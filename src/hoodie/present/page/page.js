"use strict";
// The timeline: moves and widens what the server has drawn. Instants stand one after another, or where their times are.
document.querySelectorAll("svg.timeline").forEach((svg) => {
  const left = +svg.dataset.left, right = +svg.dataset.right, wide = right - left;
  const marks = [...svg.querySelectorAll("g.i")].map((node) => ({
    node, a: +node.dataset.a, b: +node.dataset.b, n: +node.dataset.n,
    parts: [...node.querySelectorAll("rect")], text: node.querySelector("text"),
  }));
  if (!marks.length) return;
  const ticks = svg.querySelector(".ticks"), told = document.getElementById("told");
  const tools = document.getElementById("timeline-tools");
  const first = Math.min(...marks.map((m) => m.a)), last = Math.max(...marks.map((m) => m.b), first + 1000);
  let byTime = false, from = 0, to = 1, chosen = -1;
  const place = (m, time) => (byTime ? (time - first) / (last - first) : 0);
  const x = (part) => left + ((part - from) / (to - from)) * wide;

  function draw() {
    const slot = wide / marks.length / (to - from);
    for (const m of marks) {
      const start = byTime ? x(place(m, m.a)) : x((m.n + 0.1) / marks.length);
      const long = byTime ? Math.max(3, x(place(m, m.b)) - start) : Math.max(2, Math.min(slot * 0.8, 28));
      const end = start + long;
      m.node.style.display = end < left || start > right ? "none" : "";
      for (const part of m.parts) {
        const act = part.classList.contains("act"), thin = byTime && !act ? Math.min(long, 6) : long;
        const at = Math.max(left, start), stop = Math.min(right, start + thin);
        part.setAttribute("x", at.toFixed(2));
        part.setAttribute("width", Math.max(0, stop - at).toFixed(2));
      }
      if (m.text) m.text.setAttribute("x", Math.min(right - 8, Math.max(left, start + long / 2)).toFixed(2));
    }
    drawTicks();
  }

  function drawTicks() {
    ticks.replaceChildren();
    for (let number = 0; number <= 6; number++) {
      const part = from + ((to - from) * number) / 6;
      const time = byTime ? first + part * (last - first)
        : marks[Math.min(marks.length - 1, Math.floor(part * marks.length))].a;
      const shown = new Date(time).toISOString();
      const text = document.createElementNS("http://www.w3.org/2000/svg", "text");
      text.setAttribute("x", (left + (wide * number) / 6).toFixed(1));
      text.setAttribute("y", svg.dataset.foot);
      text.setAttribute("text-anchor", number === 0 ? "start" : number === 6 ? "end" : "middle");
      text.textContent = byTime && (to - from) * (last - first) < 120000 ? shown.slice(11, 23) : shown.slice(5, 16).replace("T", " ");
      ticks.append(text);
    }
  }

  function zoom(factor, about) {
    const smallest = byTime ? 1e-6 : Math.min(1, 3 / marks.length);
    const size = Math.min(1, Math.max(smallest, (to - from) * factor));
    from = Math.min(1 - size, Math.max(0, about - ((about - from) / (to - from)) * size));
    to = from + size;
    draw();
  }
  function pan(share) {
    const size = to - from;
    from = Math.min(1 - size, Math.max(0, from + share * size));
    to = from + size;
    draw();
  }
  function choose(number) {
    if (chosen >= 0) marks[chosen].node.classList.remove("chosen");
    document.querySelectorAll("tr.chosen").forEach((row) => row.classList.remove("chosen"));
    chosen = Math.min(marks.length - 1, Math.max(0, number));
    const m = marks[chosen];
    m.node.classList.add("chosen");
    told.textContent = m.node.querySelector("title").textContent;
    const part = byTime ? place(m, m.a) : (m.n + 0.5) / marks.length;
    if (part < from || part > to) { const size = to - from; from = Math.min(1 - size, Math.max(0, part - size / 2)); to = from + size; }
    draw();
  }
  const all = () => { from = 0; to = 1; draw(); };
  const partAt = (event) => {
    const box = svg.getBoundingClientRect();
    const at = ((event.clientX - box.left) / box.width) * svg.viewBox.baseVal.width;
    return from + ((at - left) / wide) * (to - from);
  };

  tools.hidden = false;
  const does = {
    in: () => zoom(0.5, (from + to) / 2), out: () => zoom(2, (from + to) / 2), back: () => pan(-0.3), on: () => pan(0.3), all,
    time: (button) => { byTime = !byTime; button.setAttribute("aria-pressed", byTime); all(); },
  };
  tools.querySelectorAll("button").forEach((button) => button.addEventListener("click", () => does[button.dataset.do](button)));
  svg.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && document.activeElement !== svg) return; // who scrolls past it scrolls the page
    event.preventDefault();
    zoom(event.deltaY > 0 ? 1.25 : 0.8, partAt(event));
  }, { passive: false });
  svg.addEventListener("keydown", (event) => {
    const keys = {
      "+": does.in, "=": does.in, "-": does.out, 0: all, ArrowLeft: () => (event.shiftKey ? pan(-0.3) : choose(chosen - 1)),
      ArrowRight: () => (event.shiftKey ? pan(0.3) : choose(chosen + 1)), Home: () => choose(0), End: () => choose(marks.length - 1),
    };
    if (keys[event.key] && !event.ctrlKey && !event.metaKey && !event.altKey) { event.preventDefault(); keys[event.key](); }
  });
  let held = null;
  svg.addEventListener("pointerdown", (event) => { held = { at: event.clientX, moved: false }; });
  window.addEventListener("pointerup", () => { held = null; });
  svg.addEventListener("pointermove", (event) => {
    if (!held) return;
    const by = (held.at - event.clientX) / svg.getBoundingClientRect().width;
    if (Math.abs(by) > 0.003) { held.moved = true; held.at = event.clientX; pan(by * (svg.viewBox.baseVal.width / wide)); }
  });
  marks.forEach((m, number) => m.node.addEventListener("click", () => choose(number)));
  choose(marks.length - 1);
});

// A button beside each command copies it.
document.querySelectorAll("code.command").forEach((code) => {
  if (!navigator.clipboard) return;
  const button = document.createElement("button");
  button.className = "copy";
  button.textContent = "copy";
  button.setAttribute("aria-label", "Copy: " + code.textContent);
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(code.textContent);
    button.textContent = "copied";
    setTimeout(() => { button.textContent = "copy"; }, 1500);
  });
  code.after(button);
});
