// Elements from values. Text is only ever set as text: nothing of a message can become markup.

export function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith('on')) element.addEventListener(name.slice(2), value);
    else if (name === 'class') element.className = value;
    else element.setAttribute(name, value === true ? '' : String(value));
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

export function fill(element, ...children) {
  element.replaceChildren(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
}

// A table with a caption that screen readers announce; rows are arrays of cells.
export function table(caption, heads, rows) {
  return h('div', {class: 'scroll', tabindex: 0, role: 'region', 'aria-label': caption},
    h('table', {}, h('caption', {}, caption),
      h('thead', {}, h('tr', {}, heads.map((head) => h('th', {scope: 'col'}, head)))),
      h('tbody', {}, rows.map((cells) => h('tr', {}, cells.map((cell, index) => index === 0
        ? h('th', {scope: 'row'}, cell) : h('td', {}, cell)))))));
}
