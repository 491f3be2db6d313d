// Draws the frames of the page's JSON: a click makes a frame as wide as the page and tells of it.
"use strict";
(() => {
  const ROW = 22;
  const root = JSON.parse(document.getElementById("frames").textContent);
  const box = document.getElementById("flame");
  const told = document.getElementById("told");
  const above = new Map();
  const mark = (frame) => frame.c.forEach((child) => { above.set(child, frame); mark(child); });
  mark(root);

  const seconds = (s) => (s >= 1 ? `${s.toFixed(3)} s` : s >= 1e-3
    ? `${(s * 1e3).toFixed(3)} ms` : `${(s * 1e6).toFixed(1)} µs`);
  const share = (frame) => `${(100 * frame.s / root.s).toFixed(1)} %`;

  function tell(frame) {
    const path = [];
    for (let each = frame; each; each = above.get(each)) path.unshift(each.n);
    told.textContent =
      [`${frame.n}: ${seconds(frame.s)}, ${share(frame)} of all`, ...frame.d,
        path.length > 1 ? `in: ${path.slice(0, -1).join(" › ")}` : ""].filter(Boolean).join("\n");
  }

  function draw(zoomed) {
    box.replaceChildren();
    let depth = 0;
    const put = (frame, left, width, row) => {
      // What would be narrower than two pixels is seen when one comes closer.
      if (width * box.clientWidth < 2) return;
      const button = document.createElement("button");
      button.textContent = frame.n;
      button.title = `${frame.n}: ${seconds(frame.s)}`;
      button.className = frame.k + (frame === zoomed ? " chosen" : "");
      button.style.left = `${100 * left}%`;
      button.style.width = `${100 * width}%`;
      button.style.top = `${row * ROW}px`;
      button.onclick = () => { draw(frame); tell(frame); };
      box.append(button);
      depth = Math.max(depth, row + 1);
      let at = left;
      for (const child of frame.c) {
        put(child, at, width * child.s / frame.s, row + 1);
        at += width * child.s / frame.s;
      }
    };
    const path = [];
    for (let each = above.get(zoomed); each; each = above.get(each)) path.unshift(each);
    path.forEach((frame, row) => {
      const children = frame.c;
      frame.c = [];
      put(frame, 0, 1, row);
      frame.c = children;
    });
    put(zoomed, 0, 1, path.length);
    box.style.height = `${depth * ROW}px`;
    box.querySelector(".chosen")?.focus({ preventScroll: true });
  }

  draw(root);
  tell(root);
})();
