// Returns the faults of a page: what people who see it, print it or have it read to them would stumble over.
(() => {
  const faults = [];
  const all = (selector) => [...document.querySelectorAll(selector)];
  const told = (element) => `<${element.tagName.toLowerCase()}> ${(element.textContent || element.alt || "").trim().slice(0, 60)}`;

  for (const fold of all("details")) {
    if (fold.firstElementChild.tagName !== "SUMMARY" || !fold.firstElementChild.textContent.trim()) {
      faults.push(`nobody can tell what is folded: ${told(fold)}`);
    }
    fold.open = true;
  }
  for (const image of all("img")) {
    if (!image.complete || image.naturalWidth === 0) faults.push(`an image does not decode: ${image.alt}`);
    if (!(image.alt || "").trim()) faults.push("an image has no alt text");
  }
  if (document.documentElement.scrollWidth > window.innerWidth) {
    faults.push(`the page is ${document.documentElement.scrollWidth} pixels wide, the window ${window.innerWidth}`);
  }
  for (const element of all("main *, footer *")) {
    const style = getComputedStyle(element);
    if (style.display === "inline" || style.overflowX !== "visible" || element.clientWidth === 0) continue;
    if (element.scrollWidth > element.clientWidth + 1) faults.push(`text leaves its box: ${told(element)}`);
  }

  for (const [selector, count] of [["main", 1], ["footer", 1], ["h1", 1], ["title", 1]]) {
    if (all(selector).length !== count) faults.push(`there must be ${count} <${selector}>, but there are ${all(selector).length}`);
  }
  if (!document.documentElement.lang) faults.push("the language is not named");
  let level = 0;
  for (const heading of all("h1, h2, h3, h4, h5, h6")) {
    const own = Number(heading.tagName[1]);
    if (own > level + 1) faults.push(`a level is left out before ${told(heading)}`);
    if (!heading.textContent.trim()) faults.push("a heading is empty");
    level = own;
  }
  const ids = all("[id]").map((element) => element.id);
  if (new Set(ids).size < ids.length) faults.push("an id is used twice");
  for (const child of document.body.children) {
    if (!["MAIN", "FOOTER", "NAV", "HEADER"].includes(child.tagName)) faults.push(`outside landmarks: ${told(child)}`);
  }
  for (const table of all("table")) {
    if (!table.caption) faults.push("a table has no caption");
    const headers = [...table.querySelectorAll("th")];
    if (headers.some((cell) => !cell.scope)) faults.push("a header cell has no scope");
    if (headers.some((cell) => !cell.textContent.trim())) faults.push("a header cell is empty");
    if (!table.closest("[role=region][tabindex='0'][aria-label]")) faults.push(`the keyboard cannot scroll ${told(table)}`);
  }
  for (const element of all("*")) {
    const scrolls = ["auto", "scroll"].includes(getComputedStyle(element).overflowX);
    if (scrolls && (element.tabIndex !== 0 || !element.ariaLabel)) faults.push(`the keyboard cannot scroll ${told(element)}`);
    if (element.tabIndex > 0) faults.push(`the order of the keyboard is changed at ${told(element)}`);
  }

  const numbers = (colour) => colour.match(/[\d.]+/g).map(Number);
  const light = (colour) => {
    const [red, green, blue] = numbers(colour).map((value) => value / 255).map((value) =>
      value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4);
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  };
  const behind = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const colour = getComputedStyle(at).backgroundColor;
      const [, , , opacity = 1] = numbers(colour);
      if (opacity === 1) return colour;
    }
    return "rgb(255, 255, 255)";
  };
  for (const element of all("main *, footer *")) {
    if (![...element.childNodes].some((node) => node.nodeType === Node.TEXT_NODE && node.data.trim())) continue;
    const pair = [light(getComputedStyle(element).color), light(behind(element))].sort((a, b) => b - a);
    const contrast = (pair[0] + 0.05) / (pair[1] + 0.05);
    if (contrast < 4.5) faults.push(`contrast ${contrast.toFixed(2)} of ${told(element)}`);
  }
  return [...new Set(faults)];
})()
