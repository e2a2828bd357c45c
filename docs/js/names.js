// What the theme leaves out for keyboards and screen readers: names of the bars over code and of the version selector, and a
// way into what scrolls.
const complete = () => {
  document.querySelectorAll(".md-code__nav:not([aria-label])").forEach(bar => {
    const block = bar.firstElementChild?.dataset.clipboardTarget?.match(/\d+/);
    bar.setAttribute("aria-label", `Code block ${Number(block ?? 0) + 1}`);
  });
  document.querySelectorAll(".md-version__current").forEach(button => {
    button.setAttribute("aria-label", `${button.innerText}: select another version`);
  });
  document.querySelectorAll("pre > code:not([tabindex]), .md-typeset__scrollwrap:not([tabindex])").forEach(part => {
    part.setAttribute("tabindex", "0");
  });
};
complete();
new MutationObserver(complete).observe(document.body, {
  attributeFilter: ["tabindex"], attributes: true, childList: true, subtree: true,
});
