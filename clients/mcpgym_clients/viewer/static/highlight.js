// Marks what was searched for, where the browser can mark text without changing the page.

export function highlight(root, text) {
  if (!globalThis.CSS?.highlights) return;
  CSS.highlights.delete("found");
  const wanted = (text || "").toLowerCase();
  if (!wanted) return;
  const ranges = [];
  const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  while (walker.nextNode() && ranges.length < 500) {
    if (walker.currentNode.parentElement?.closest(".legend, .who, .reader-head")) continue;
    const said = walker.currentNode.data.toLowerCase();
    for (let at = said.indexOf(wanted); at >= 0; at = said.indexOf(wanted, at + wanted.length)) {
      const range = new Range();
      range.setStart(walker.currentNode, at);
      range.setEnd(walker.currentNode, Math.min(at + wanted.length, walker.currentNode.length));
      ranges.push(range);
    }
  }
  if (ranges.length) {
    CSS.highlights.set("found", new Highlight(...ranges));
    ranges[0].startContainer.parentElement?.scrollIntoView({ block: "center" });
  }
}
