// An expression: an object with a function for each question, each of which returns a list of lines.
(() => {
  const SVG = "http://www.w3.org/2000/svg";
  const SHAPES = "rect, path, circle, ellipse, polygon";
  const isSvg = (element) => element.namespaceURI === SVG;
  const isSeen = (element) => element.checkVisibility({ opacityProperty: true, visibilityProperty: true });

  const name = (element) => {
    const words = [element.localName, ...element.classList].join(".");
    return `<${element.id ? `${words}#${element.id}` : words}>`;
  };
  const short = (text) => JSON.stringify(text.trim().replace(/\s+/g, " ").slice(0, 60));

  // Every piece of text that can be seen: its element, its words, its boxes.
  const texts = () => {
    const found = [];
    const walker = document.createTreeWalker(document.documentElement, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
      const node = walker.currentNode;
      const element = node.parentElement;
      if (!node.data.trim() || !isSeen(element)) continue;
      const range = document.createRange();
      range.selectNodeContents(node);
      // Words for readers that do not look are clipped to next to nothing.
      const boxes = [...range.getClientRects()].filter((box) => box.width > 1 && box.height > 1);
      const clip = element.getBoundingClientRect();
      const isClipped = getComputedStyle(element).overflow === "hidden" && clip.width <= 1 && clip.height <= 1;
      if (boxes.length && !isClipped) found.push({ element, words: short(node.data), boxes });
    }
    return found;
  };

  // Pixels of the screen, not of a drawing that is scaled.
  const fontSize = (element) => {
    const size = parseFloat(getComputedStyle(element).fontSize);
    const matrix = isSvg(element) && element.getScreenCTM && element.getScreenCTM();
    return matrix ? size * Math.sqrt(Math.abs(matrix.a * matrix.d - matrix.b * matrix.c)) : size;
  };

  const known = new Map();
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  // Red, green, blue from 0 to 255, and alpha from 0 to 1; null for what is no plain colour.
  const colour = (text) => {
    if (!known.has(text)) known.set(text, parsed(text));
    return known.get(text);
  };
  const parsed = (text) => {
    const plain = text.match(/^rgba?\(([\d.]+), ([\d.]+), ([\d.]+)(?:, ([\d.]+))?\)$/);
    if (plain) return [+plain[1], +plain[2], +plain[3], plain[4] === undefined ? 1 : +plain[4]];
    if (text === "none" || !CSS.supports("color", text)) return null;
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = text;
    canvas.fillRect(0, 0, 1, 1);
    const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data;
    return [r, g, b, a / 255];
  };
  const faded = ([r, g, b, a], by) => [r, g, b, a * by];
  const over = ([r, g, b, a], below) => [r, g, b].map((part, at) => part * a + below[at] * (1 - a));
  const shown = (parts) => `#${parts.map((part) => Math.round(part).toString(16).padStart(2, "0")).join("")}`;

  const luminance = (parts) => {
    const [r, g, b] = parts.map((part) => part / 255).map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ratio = (one, other) => {
    const [low, high] = [luminance(one), luminance(other)].sort((a, b) => a - b);
    return (high + 0.05) / (low + 0.05);
  };

  // What the window shows where the page paints nothing; a dark scheme has another one.
  const bare = () => {
    const probe = document.createElement("div");
    probe.style.backgroundColor = "Canvas";
    document.documentElement.append(probe);
    const found = colour(getComputedStyle(probe).backgroundColor);
    probe.remove();
    return found.slice(0, 3);
  };

  // The colours that an element may have behind its content: one, or those of a gradient's stops.
  const backgrounds = (style) => {
    const base = colour(style.backgroundColor) || [0, 0, 0, 0];
    const stops = (style.backgroundImage.match(/rgba?\([^)]*\)/g) || []).map(colour).filter(Boolean);
    return stops.length ? stops.map((stop) => [base, stop]) : [[base]];
  };

  // Shapes of a drawing that lie under a point of a text: they come before it.
  const shapesBelow = (element, x, y) => {
    const drawing = outermost(element);
    return [...drawing.querySelectorAll(SHAPES)].flatMap((shape) => {
      const comesBefore = shape.compareDocumentPosition(element) & Node.DOCUMENT_POSITION_FOLLOWING;
      const matrix = comesBefore && !shape.closest("defs, clipPath, mask, symbol, marker") && isSeen(shape) && shape.getScreenCTM();
      if (!matrix || !shape.isPointInFill(new DOMPoint(x, y).matrixTransform(matrix.inverse()))) return [];
      const style = getComputedStyle(shape);
      const fill = colour(style.fill);
      let opacity = +style.fillOpacity;
      for (let at = shape; at !== drawing; at = at.parentElement) opacity *= +getComputedStyle(at).opacity;
      return fill ? [faded(fill, opacity)] : [];
    });
  };
  const outermost = (element) => {
    let drawing = element.closest("svg");
    while (drawing.parentElement && drawing.parentElement.closest("svg")) drawing = drawing.parentElement.closest("svg");
    return drawing;
  };

  const inkOf = (element) => {
    const style = getComputedStyle(element);
    if (!isSvg(element)) return colour(style.webkitTextFillColor || style.color);
    const fill = colour(style.fill);
    return fill && faded(fill, +style.fillOpacity);
  };

  // All pairs of what a text's pixels and those beside them may look like. Opacity counts for an element with all that is in it.
  const pairs = (chain, below, ink, shapes) => {
    if (!chain.length) {
      const ground = shapes.reduce((ground, shape) => over(shape, ground), below);
      return [[over(ink, ground), ground]];
    }
    const [first, ...rest] = chain;
    return first.backgrounds.flatMap((layers) => {
      const inside = pairs(rest, layers.reduce((ground, layer) => over(layer, ground), below), ink, shapes);
      return inside.map((pair) => pair.map((parts) => over([...parts, first.opacity], below)));
    });
  };

  const contrast = () => {
    const window = bare();
    return texts().flatMap(({ element, words, boxes }) => {
      const ink = inkOf(element);
      if (!ink) return [`${words} ${name(element)}: its colour cannot be told`];
      const chain = [];
      for (let at = element; at; at = at.parentElement) {
        const style = getComputedStyle(at);
        const inside = isSvg(at) && at.ownerSVGElement;
        chain.unshift({ opacity: +style.opacity, backgrounds: inside ? [[]] : backgrounds(style) });
      }
      const points = boxes.flatMap((box) => [0.02, 0.5, 0.98].map((part) => [box.x + box.width * part, box.y + box.height / 2]));
      const places = isSvg(element) ? points.map(([x, y]) => shapesBelow(element, x, y)) : [[]];
      const found = places.flatMap((shapes) => pairs(chain, window, ink, shapes)).map(([text, ground]) => ({ text, ground, ratio: ratio(text, ground) }));
      const worst = found.reduce((worst, one) => (one.ratio < worst.ratio ? one : worst));
      const size = fontSize(element);
      const isLarge = size >= 24 || (size >= 18.66 && +getComputedStyle(element).fontWeight >= 700);
      if (worst.ratio >= (isLarge ? 3 : 4.5)) return [];
      return [`${worst.ratio.toFixed(2)} ${words} ${name(element)}: ${shown(worst.text)} on ${shown(worst.ground)}`];
    });
  };

  const tiny = () =>
    texts()
      .map(({ element, words }) => ({ element, words, size: fontSize(element) }))
      .filter(({ size }) => size < 10.99)
      .map(({ element, words, size }) => `${size.toFixed(1)} px ${words} ${name(element)}`);

  const scrolls = (style) => /auto|scroll/.test(style.overflowX);
  const isInWhatScrolls = (element) => {
    for (let at = element.parentElement; at && at !== document.documentElement; at = at.parentElement) {
      if (scrolls(getComputedStyle(at))) return true;
    }
    return false;
  };

  // How an element's content sticks out of it; what ends with three dots is cut on purpose.
  const sticksOut = (element) => {
    const style = getComputedStyle(element);
    if (isSvg(element) || style.display === "inline" || style.display === "contents" || element === document.body) return null;
    const wide = element.scrollWidth - element.clientWidth;
    const high = element.scrollHeight - element.clientHeight;
    const isHidden = element.clientWidth <= 1 && element.clientHeight <= 1;
    if (isHidden || element.clientWidth === 0) return null;
    if (wide > 1 && !scrolls(style) && style.textOverflow !== "ellipsis") return `its content is ${wide} px wider`;
    // The letters of a line may reach beyond its height without touching anything.
    const slack = parseFloat(style.fontSize) / 2;
    if (high > slack && !/auto|scroll/.test(style.overflowY) && style.webkitLineClamp === "none") return `its content is ${high} px higher`;
    return null;
  };

  const isCutByDrawing = (element) => {
    const [inner, outer] = [element.getBoundingClientRect(), outermost(element).getBoundingClientRect()];
    const isWithin = inner.left >= outer.left - 1 && inner.right <= outer.right + 1 && inner.top >= outer.top - 1 && inner.bottom <= outer.bottom + 1;
    return isWithin ? null : "the drawing ends before it does";
  };

  // How it leaves the window, or its content leaves it.
  const leaves = (element) => {
    const [box, width] = [element.getBoundingClientRect(), document.documentElement.clientWidth];
    if (isSvg(element) && element.ownerSVGElement) return null;
    if (box.right > width + 1) return `it ends ${Math.round(box.right - width)} px right of the window`;
    if (box.right > 0 && box.left < -1) return `it begins ${Math.round(-box.left)} px left of the window`;
    return sticksOut(element);
  };

  const overflows = () => {
    const root = document.documentElement;
    const found = [];
    const all = [...document.body.querySelectorAll("*")].filter((element) => isSeen(element) && element.getClientRects().length);
    for (const element of all) {
      const why = element.localName === "text" && isSvg(element) ? isCutByDrawing(element) : !isInWhatScrolls(element) && leaves(element);
      if (why) found.push({ element, why });
    }
    // What holds it sticks out as well: the innermost is the one to look at.
    const inner = found.filter((one) => !found.some((other) => other !== one && one.element.contains(other.element)));
    const lines = inner.map(({ element, why }) => `${name(element)} ${short(element.textContent)}: ${why}`);
    const wide = root.scrollWidth - root.clientWidth;
    return wide > 0 ? [`the page is ${wide} px wider than the window`, ...lines] : lines;
  };

  return { contrast, overflows, tiny };
})()
