// Elements made from text alone: what a session says is never read as markup.
const make = (tag, attributes = {}, ...children) => {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === false || value == null) continue;
    element.setAttribute(name, value === true ? '' : value);
  }
  element.append(...children.filter((child) => child != null && child !== ''));
  return element;
};

const tokens = (count) => {
  if (Math.abs(count) < 10_000) return count.toLocaleString('en').replace('-', '−');
  const [scale, unit] = Math.abs(count) >= 999_500_000 ? [1e9, 'G'] : Math.abs(count) >= 999_500 ? [1e6, 'M'] : [1e3, 'k'];
  const value = count / scale;
  return `${value.toFixed(Math.abs(value) < 9.995 ? 2 : Math.abs(value) < 99.95 ? 1 : 0)}${unit}`.replace('-', '−');
};

const many = (count, one) => `${count.toLocaleString('en')} ${one}${count === 1 ? '' : 's'}`;

// Tables: sorted by their headings, folded to their first rows.
const valueOf = (row, at) => {
  const cell = row.cells[at];
  return cell.dataset.v === undefined ? cell.textContent.toLowerCase() : Number(cell.dataset.v);
};

const sortBy = (table, at) => {
  const heads = table.tHead.rows[0].cells;
  const rows = [...table.tBodies[0].rows];
  if (!rows.length) return;
  const isNumber = rows[0].cells[at].dataset.v !== undefined;
  const now = heads[at].getAttribute('aria-sort');
  const falls = now ? now === 'ascending' : isNumber;
  const compare = (one, other) => {
    const [a, b] = [valueOf(one, at), valueOf(other, at)];
    return (a < b ? -1 : a > b ? 1 : 0) * (falls ? -1 : 1);
  };
  for (const head of heads) head.removeAttribute('aria-sort');
  heads[at].setAttribute('aria-sort', falls ? 'descending' : 'ascending');
  table.tBodies[0].append(...rows.sort(compare));
};

const makeSortable = (table) => {
  [...table.tHead.rows[0].cells].forEach((head, at) => {
    if (!head.textContent) return;
    const button = make('button', { type: 'button' }, ...head.childNodes);
    head.append(button);
    button.addEventListener('click', () => sortBy(table, at));
  });
};

const makeFoldable = (box) => {
  const button = box.querySelector('.more');
  const table = box.querySelector('table.foldable');
  if (!button || !table) return;
  const all = button.textContent;
  const fold = (folded) => {
    table.classList.toggle('folded', folded);
    button.textContent = folded ? all : 'Show fewer';
    button.setAttribute('aria-expanded', String(!folded));
  };
  fold(true);
  button.addEventListener('click', () => fold(!table.classList.contains('folded')));
};
