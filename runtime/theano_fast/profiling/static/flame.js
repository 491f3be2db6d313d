// Draw the tree of frames in the page's JSON. A click zooms in to a frame and shows its details.
// Frame.to_json in flame_graph.py writes a frame's keys: n (name), s (seconds), k (kind), d (details)
// and c (children).
"use strict";
(() => {
  const ROW = 22;
  const root = JSON.parse(document.getElementById("frames").textContent);
  const graph = document.getElementById("flame");
  const details = document.getElementById("details");
  const parents = new Map();
  const setParents = (frame) => frame.c.forEach((child) => {
    parents.set(child, frame);
    setParents(child);
  });
  setParents(root);

  const seconds = (s) => (s >= 1 ? `${s.toFixed(3)} s` : s >= 1e-3
    ? `${(s * 1e3).toFixed(3)} ms` : `${(s * 1e6).toFixed(1)} µs`);
  const share = (frame) => `${(100 * frame.s / root.s).toFixed(1)} %`;

  // The frames from the root to a frame's parent.
  function listAncestors(frame) {
    const parent = parents.get(frame);
    return parent ? [...listAncestors(parent), parent] : [];
  }

  function showDetails(frame) {
    const path = listAncestors(frame).map((ancestor) => ancestor.n);
    details.textContent =
      [`${frame.n}: ${seconds(frame.s)}, ${share(frame)} of the total`, ...frame.d,
        path.length ? `in: ${path.join(" › ")}` : ""].filter(Boolean).join("\n");
  }

  function draw(zoomed) {
    graph.replaceChildren();
    let depth = 0;
    const drawFrame = (frame, left, width, row) => {
      // Frames narrower than two pixels appear after zooming in.
      if (width * graph.clientWidth < 2) return;
      const button = document.createElement("button");
      button.textContent = frame.n;
      button.title = `${frame.n}: ${seconds(frame.s)}`;
      button.className = frame.k + (frame === zoomed ? " chosen" : "");
      button.style.left = `${100 * left}%`;
      button.style.width = `${100 * width}%`;
      button.style.top = `${row * ROW}px`;
      button.onclick = () => { draw(frame); showDetails(frame); };
      graph.append(button);
      depth = Math.max(depth, row + 1);
      let start = left;
      for (const child of frame.c) {
        drawFrame(child, start, width * child.s / frame.s, row + 1);
        start += width * child.s / frame.s;
      }
    };
    const ancestors = listAncestors(zoomed);
    ancestors.forEach((frame, row) => {
      // Draw the ancestor in full width, without its children.
      const children = frame.c;
      frame.c = [];
      drawFrame(frame, 0, 1, row);
      frame.c = children;
    });
    drawFrame(zoomed, 0, 1, ancestors.length);
    graph.style.height = `${depth * ROW}px`;
    graph.querySelector(".chosen")?.focus({ preventScroll: true });
  }

  draw(root);
  showDetails(root);
})();
