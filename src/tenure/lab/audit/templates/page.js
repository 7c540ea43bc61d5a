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
// The drawing of a run: point at a call, or go there by key, and read what the window held and what a commit took.
const lastAtMost = (sorted, value) => {
  let [low, high] = [0, sorted.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (sorted[middle] <= value) low = middle + 1;
    else high = middle;
  }
  return low - 1;
};

// As the drawing's own numbers are chosen.
const ticks = (top) => {
  const least = top / 6;
  const power = 10 ** Math.floor(Math.log10(Math.max(1, least)));
  const step = Math.max(1, Math.floor([1, 2, 2.5, 5, 10].map((each) => each * power).find((each) => each >= least)));
  return Array.from({ length: Math.floor(top / step) + 1 }, (_, place) => place * step);
};

const draw = (name, attributes, text = '') => {
  const shape = document.createElementNS('http://www.w3.org/2000/svg', name);
  for (const [key, value] of Object.entries(attributes)) shape.setAttribute(key, value);
  shape.textContent = text;
  return shape;
};

const sum = (row) => row.reduce((total, each) => total + each, 0);

const commitOf = (session, row) => {
  const [commit, beforeCall, entries, policy, moment, why, forced, before, after, actions, gone, more] = row;
  const text = (number) => session.texts[number];
  return {
    commit, beforeCall, entries, before, after, more,
    policy: text(policy), moment: text(moment), why: text(why), forced: Boolean(forced),
    actions: actions.map(([kind, count]) => [text(kind), count]),
    gone: gone.map(([object, kind, level, size]) => ({ object: text(object), kind: text(kind), level: text(level), size })),
  };
};

const makeDrawing = (figure, session, run, open) => {
  const drawing = figure.querySelector('.drawing');
  const plot = figure.querySelector('.plot');
  const cursor = figure.querySelector('.cursor');
  const event = figure.querySelector('.event');
  const readout = figure.querySelector('.readout');
  const cells = [...readout.tBodies[0].rows].map((row) => row.cells[1]);
  const bands = session.bands.length;
  const hint = event.textContent;
  const commits = run.commits.map((row) => row[1]);
  if (!run.calls.length) return { outline: () => {}, scale: () => {} };
  let other = session.runs[0];
  let at = run.tokens.map(sum).reduce((best, total, place, all) => (total > all[best] ? place : best), 0);
  let told = null;

  const stop = (place) => (place + 1 < run.calls.length ? run.calls[place + 1] : session.calls);
  const near = (place) => {
    const first = lastAtMost(commits, run.calls[place] - 1) + 1;
    const rows = run.commits.slice(first, lastAtMost(commits, stop(place) - 1) + 1);
    return rows.sort((one, two) => two[7] - two[8] - (one[7] - one[8]));
  };
  const tellCommit = (rows) => {
    event.replaceChildren();
    told = rows.length ? commitOf(session, rows[0]) : null;
    if (!told) return event.append(hint);
    const name = `${session.id}/${run.id}/commit-${told.commit}`;
    const largest = told.gone.slice(0, 3).map((gone) => `${gone.object} ${tokens(gone.size)}`).join(', ');
    event.append(
      make('a', { href: `#${name}` }, `Commit ${told.commit}`),
      ` before call ${told.beforeCall.toLocaleString('en')}${told.forced ? ', forced' : ''}, took ${tokens(told.before - told.after)} tokens: `,
      `${told.why}. `,
      largest ? make('span', { class: 'mono' }, largest) : '',
      rows.length > 1 ? ` And ${many(rows.length - 1, 'smaller commit')} here.` : '',
    );
  };
  const tell = (place) => {
    at = Math.max(0, Math.min(run.calls.length - 1, place));
    const call = run.calls[at];
    const rows = near(at);
    const x = `${(100 * (rows.length ? rows[0][1] : (call + stop(at)) / 2)) / session.calls}%`;
    cursor.setAttribute('x1', x);
    cursor.setAttribute('x2', x);
    figure.classList.add('pointed');
    const time = session.times[lastAtMost(session.times.map((each) => each[0]), call)];
    readout.caption.textContent = `call ${call.toLocaleString('en')}${time ? ` · ${time[1].slice(0, 16).replace('T', ' ')}` : ''}`;
    const values = run.tokens[at];
    for (let band = 0; band < bands; band += 1) cells[band].textContent = tokens(values[bands - 1 - band]);
    cells[bands].textContent = tokens(sum(values));
    tellOther();
    tellCommit(rows);
    const taken = told ? `, commit ${told.commit} took ${tokens(told.before - told.after)}` : '';
    drawing.setAttribute('aria-valuenow', call);
    drawing.setAttribute('aria-valuetext', `call ${call}: ${tokens(sum(values))} tokens${taken}`);
  };
  const tellOther = () => {
    const place = lastAtMost(other.calls, run.calls[at]);
    cells[bands + 1].textContent = place < 0 ? '' : tokens(sum(other.tokens[place]));
  };
  const toCommit = (step) => {
    let place = at + step;
    while (place >= 0 && place < run.calls.length && !near(place).length) place += step;
    if (place >= 0 && place < run.calls.length) tell(place);
  };
  const keys = {
    ArrowLeft: (shift) => (shift ? toCommit(-1) : tell(at - 1)),
    ArrowRight: (shift) => (shift ? toCommit(1) : tell(at + 1)),
    PageUp: () => tell(at - 20),
    PageDown: () => tell(at + 20),
    Home: () => tell(0),
    End: () => tell(run.calls.length - 1),
    Enter: () => told && open(`${session.id}/${run.id}/commit-${told.commit}`),
  };

  for (const [name, value] of Object.entries({
    tabindex: 0, role: 'slider', 'aria-label': `${run.name}: the window by call`, 'aria-orientation': 'horizontal',
    'aria-valuemin': run.calls[0], 'aria-valuemax': run.calls[run.calls.length - 1], 'aria-valuenow': run.calls[at],
  })) drawing.setAttribute(name, value);
  const follow = (pointer) => {
    const box = plot.getBoundingClientRect();
    const call = ((pointer.clientX - box.left) / box.width) * session.calls;
    const reach = (5 / box.width) * session.calls;
    const hit = commits.find((each) => Math.abs(each - call) <= reach);
    tell(lastAtMost(run.calls, hit === undefined ? call : hit));
  };
  plot.addEventListener('pointermove', follow);
  plot.addEventListener('pointerdown', follow);
  plot.addEventListener('click', () => told && open(`${session.id}/${run.id}/commit-${told.commit}`));
  drawing.addEventListener('keydown', (key) => {
    if (!keys[key.key] || key.altKey || key.ctrlKey || key.metaKey) return;
    key.preventDefault();
    keys[key.key](key.shiftKey);
  });

  // The outline may be that of any other policy, and the scale the one that all policies fit in.
  const [own, shared] = [Number(drawing.dataset.own), Number(drawing.dataset.shared)];
  const areas = figure.querySelector('.areas');
  const [calls, ground] = areas.getAttribute('viewBox').split(' ').slice(2).map(Number);
  const pixels = areas.height.baseVal.value;
  let isShared = false;
  const showNames = () => {
    const isOwn = !isShared || own === shared;
    for (const name of figure.querySelectorAll('.names text')) {
      name.style.display = isOwn && (other === session.runs[0] || name.classList.contains('name')) ? '' : 'none';
    }
  };
  const outline = (chosen) => {
    other = chosen;
    const steps = chosen.calls.map((call, place) => {
      const height = Math.round(ground * (1 - sum(chosen.tokens[place]) / own));
      return `${place ? 'H' : 'M'}${call}${place ? 'V' : ' '}${height}`;
    });
    figure.querySelector('.outline').setAttribute('d', steps.length ? `${steps.join('')}H${calls}` : '');
    const head = readout.querySelector('.recorded th');
    head.replaceChildren(head.querySelector('i'), chosen === session.runs[0] ? 'as recorded' : chosen.name);
    showNames();
    tellOther();
  };
  const scale = (wanted) => {
    isShared = wanted;
    const top = isShared ? shared : own;
    const y = (amount) => pixels * (1 - amount / top);
    areas.setAttribute('viewBox', `0 ${ground * (1 - top / own)} ${calls} ${(ground * top) / own}`);
    const lines = ticks(top).map((at) => draw('line', { class: 'grid-line', x2: '100%', y1: y(at), y2: y(at) }));
    const numbers = ticks(top).map((at) => draw('text', { x: 40, y: y(at) + 4 }, tokens(at).replace(/\.0+(?=\D)/, '')));
    figure.querySelector('.lines').replaceChildren(...lines.slice(1));
    figure.querySelector('.axis g').replaceChildren(...numbers);
    for (const bound of figure.querySelectorAll('.bound')) {
      const at = y(Number(bound.dataset.at));
      bound.querySelector('line').setAttribute('y1', at);
      bound.querySelector('line').setAttribute('y2', at);
      bound.querySelector('text').setAttribute('y', at - 5);
    }
    showNames();
  };
  tellOther();
  return { outline, scale };
};
// The needs of a run: all that are listed, filtered and searched, and the panel that shows the very place of one.
const VERDICTS = ['lost', 'routed', 'visible'];

const needOf = (session, row) => {
  const names = ['name', 'verdict', 'kind', 'form', 'category', 'rule', 'text', 'more', 'call', 'entry', 'part', 'tool', 'field',
    'objects', 'held', 'route', 'commit', 'at', 'step', 'heldAt', 'holder', 'handle'];
  const need = Object.fromEntries(names.map((name, place) => [name, row[place]]));
  for (const name of ['verdict', 'kind', 'form', 'category', 'rule', 'text', 'part', 'tool', 'field', 'route', 'handle']) {
    need[name] = session.texts[need[name]];
  }
  need.objects = need.objects.map((each) => session.texts[each]);
  return need;
};

const tag = (verdict) => make('b', { class: `tag v-${VERDICTS.includes(verdict) ? verdict : 'visible'}` }, verdict);

const holderOf = (need) => need.objects[need.objects.length - 1] || (need.held.length ? `entry:${need.held[need.held.length - 1]}` : '');

const oneLine = (text) => text.replaceAll('\n', '⏎');

const needRow = (need, name) => {
  const number = (value) => make('td', { class: 'n slim', 'data-v': value }, value.toLocaleString('en'));
  const verdict = make('td', { class: 'verdict', 'data-v': VERDICTS.indexOf(need.verdict) }, tag(need.verdict));
  const link = make('a', { href: `#${name}`, class: 'clip mono' }, oneLine(need.text));
  const row = make('tr', { id: name }, verdict, make('th', { scope: 'row', class: 'words' }, link), make('td', { class: 'slim' }, need.form),
    make('td', {}, need.category.replaceAll('-', ' ')), number(need.call),
    make('td', {}, make('span', { class: 'clip mono', title: holderOf(need) }, holderOf(need))), number(need.commit));
  return row;
};

const makeNeeds = (article, session, run) => {
  const table = article.querySelector('.needs table');
  const filters = article.querySelector('.filters');
  if (!table || !filters) return;
  const needs = run.needs.map((row) => needOf(session, row));
  const worst = [...needs].sort((one, other) => VERDICTS.indexOf(one.verdict) - VERDICTS.indexOf(other.verdict));
  const rows = new Map(worst.map((need) => [needRow(need, `${session.id}/${run.id}/${need.name}`), need]));
  table.tBodies[0].replaceChildren(...rows.keys());

  const shown = new Set(VERDICTS.filter((verdict) => verdict !== 'visible' || !needs.some((need) => need.verdict !== 'visible')));
  const chosen = { kind: '', category: '' };
  const search = make('input', { type: 'search', placeholder: 'Search', 'aria-label': 'Search needs', autocomplete: 'off', spellcheck: 'false' });
  const apply = () => {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    let count = 0;
    for (const [row, need] of rows) {
      const text = `${need.text}\n${need.objects.join(' ')}\n${need.tool} ${need.field} ${need.form}`.toLowerCase();
      row.hidden = !shown.has(need.verdict) || (chosen.kind && need.kind !== chosen.kind)
        || (chosen.category && need.category !== chosen.category) || !words.every((word) => text.includes(word));
      count += !row.hidden;
    }
    table.caption.textContent = `${count.toLocaleString('en')} of ${many(needs.length, 'listed need')}`
      + (run.more_needs ? `; ${run.more_needs.toLocaleString('en')} more are counted and not listed` : '');
  };
  const verdicts = VERDICTS.map((verdict) => {
    const count = needs.filter((need) => need.verdict === verdict).length;
    const button = make('button', { type: 'button', class: 'toggle', 'aria-pressed': String(shown.has(verdict)), disabled: !count },
      tag(verdict), ` ${count.toLocaleString('en')}`);
    button.addEventListener('click', () => {
      if (!shown.delete(verdict)) shown.add(verdict);
      button.setAttribute('aria-pressed', String(shown.has(verdict)));
      apply();
    });
    return button;
  });
  const choices = ['kind', 'category'].map((what) => {
    const counts = new Map();
    for (const need of needs) counts.set(need[what], (counts.get(need[what]) || 0) + 1);
    const options = [...counts].sort().map(([name, count]) => make('option', { value: name }, `${name.replaceAll('-', ' ')} (${count})`));
    const select = make('select', { 'aria-label': `Only this ${what}` }, make('option', { value: '' }, `every ${what}`), ...options);
    select.addEventListener('change', () => {
      chosen[what] = select.value;
      apply();
    });
    return select;
  });
  search.addEventListener('input', apply);
  filters.append(make('span', { role: 'group', 'aria-label': 'Verdicts' }, ...verdicts), ...choices, search);
  apply();
};

// The panel.
const excerptOf = (session, [text, start, length, before, after]) => {
  if (text < 0) return make('p', { class: 'none' }, 'This page has no room left for this excerpt.');
  const whole = session.texts[text];
  const cut = (count) => (count ? make('i', { class: 'cut' }, `… ${count.toLocaleString('en')} characters …`) : '');
  return make('pre', { tabindex: '0' }, cut(before), whole.slice(0, start), length ? make('mark', {}, whole.slice(start, start + length)) : '',
    whole.slice(start + length), cut(after));
};

const quoted = (path) => (/^[\w@%+=:,./-]+$/.test(path) ? path : `'${path.replaceAll("'", "'\\''")}'`);

const place = (entry, line) => `message ${entry.toLocaleString('en')}${line ? `, line ${line.toLocaleString('en')} of the log` : ''}`;

// Where in the session it was held, left and was needed; a word that has no room above the line stands below it, or not at all.
const strip = (session, marks) => {
  const box = draw('svg', { class: 'strip', 'aria-hidden': 'true' });
  box.append(draw('line', { x1: '0', x2: '100%', y1: 24, y2: 24 }));
  const rows = [[12, []], [44, []]];
  for (const [class_, entry, label] of marks) {
    const share = Math.min(1, entry / Math.max(1, session.entries));
    const x = `${2 + 96 * share}%`;
    const side = share < 0.1 ? 'start' : share > 0.9 ? 'end' : 'middle';
    const row = rows.find(([, taken]) => taken.every((other) => Math.abs(other - share) > 0.15));
    box.append(draw('circle', { class: class_, cx: x, cy: 24, r: 5 }));
    if (!row) continue;
    row[1].push(share);
    box.append(draw('text', { x, y: row[0], class: side }, label));
  }
  return box;
};

const needPanel = (session, run, need) => {
  const row = run.commits.find((each) => each[0] === need.commit);
  const commit = row && commitOf(session, row);
  const held = need.held[need.held.length - 1];
  const others = need.objects.slice(0, -1);
  const where = need.tool ? `${need.tool}${need.field ? `, ${need.field}` : ''}` : need.part;
  const marks = [['held', held, 'held'], ...(commit ? [['taken', commit.entries, 'left']] : []), ['needed', need.entry, 'needed']];
  const back = need.handle ? make('pre', { class: 'command', tabindex: '0' }, `tenure recall ${quoted(session.path)} ${quoted(need.handle)}`) : '';
  return [
    make('h2', {}, tag(need.verdict), ` ${need.form}, ${need.category.replaceAll('-', ' ')}`),
    make('pre', { class: 'needed', tabindex: '0' }, need.text),
    need.more ? make('p', {}, `And ${many(need.more, 'more string')} of the same need.`) : '',
    strip(session, marks),
    make('h3', {}, 'Held ', make('small', {}, [holderOf(need), held === undefined ? '' : place(held, need.heldAt)].filter(Boolean).join(', '))),
    excerptOf(session, need.holder),
    others.length ? make('p', {}, `Held before by ${others.join(', ')}.`) : '',
    make('h3', {}, 'Left ', make('small', {}, make('a', { href: `#${session.id}/${run.id}/commit-${need.commit}` }, `commit ${need.commit}`),
      commit ? ` before call ${commit.beforeCall.toLocaleString('en')}` : '')),
    commit ? make('p', {}, `${commit.why}.`) : '',
    make('h3', {}, 'Needed ', make('small', {}, `call ${need.call.toLocaleString('en')}, ${place(need.entry, need.at)}, ${where}`)),
    excerptOf(session, need.step),
    make('h3', {}, 'The way back'),
    make('p', {}, need.verdict === 'visible' ? 'None is needed: the window still shows it elsewhere.'
      : need.route ? `A residue shows ${need.route} and a cue: one recall.`
        : `${need.category === 'recovery-routing' ? 'A residue names it but gives no cue.' : 'No residue names it.'} The record still has it:`),
    back,
    make('p', { class: 'rule' }, `Category by the rule “${need.rule}”.`),
  ];
};

const commitPanel = (session, run, commit) => {
  const needs = run.needs.map((row) => needOf(session, row)).filter((need) => need.commit === commit.commit && need.verdict !== 'visible');
  const gone = commit.gone.map((each) => make('tr', {}, make('th', { scope: 'row', class: 'mono' }, each.object),
    make('td', {}, `${each.kind}${each.level ? ` (${each.level})` : ''}`), make('td', { class: 'n' }, tokens(each.size))));
  const head = make('thead', {}, make('tr', {}, ...['object', 'action', 'left'].map((name, at) => make('th', { scope: 'col', class: at > 1 ? 'n' : false }, name))));
  return [
    make('h2', {}, `Commit ${commit.commit}`),
    make('p', {}, `${commit.why}.`),
    make('dl', { class: 'facts' }, ...[
      ['before call', commit.beforeCall.toLocaleString('en')], ['moment', `${commit.moment}${commit.forced ? ', forced' : ''}`], ['by', commit.policy],
      ['window', `${tokens(commit.before)} → ${tokens(commit.after)}`], ['left', tokens(commit.before - commit.after)],
      ['actions', commit.actions.map(([kind, count]) => `${count} × ${kind}`).join(', ')],
    ].filter(([, value]) => value).map(([name, value]) => make('div', {}, make('dt', {}, name), make('dd', {}, value)))),
    make('h3', {}, 'What left'),
    gone.length ? make('table', {}, head, make('tbody', {}, ...gone)) : make('p', { class: 'none' }, 'Nothing is named.'),
    commit.more ? make('p', {}, `And ${many(commit.more, 'more object')}.`) : '',
    make('h3', {}, 'What was missed of it'),
    needs.length ? make('ul', { class: 'missed' }, ...needs.slice(0, 100).map((need) => make('li', {}, tag(need.verdict), ' ',
      make('a', { href: `#${session.id}/${run.id}/${need.name}`, class: 'mono' }, oneLine(need.text).slice(0, 120)), ` call ${need.call.toLocaleString('en')}`)))
      : make('p', { class: 'none' }, 'Nothing that is listed.'),
  ];
};
// Where one is: #session/policy/need, or #session/policy/commit-4.
const data = JSON.parse(document.getElementById('data').textContent);
const panel = document.getElementById('panel');
const overview = document.getElementById('overview');
const sections = new Map(data.map((session) => [session.id, document.getElementById(session.id)]));
const ready = new Set();
let opener = null;

const articleOf = (session, run) => document.getElementById(`${session.id}/${run.id}`);

const go = (name, { replace = false, scroll = false } = {}) => {
  history[replace ? 'replaceState' : 'pushState'](null, '', `#${name}`);
  route({ scroll });
};

const prepare = (session) => {
  if (ready.has(session.id)) return;
  ready.add(session.id);
  const tabs = sections.get(session.id).querySelector('.tabs');
  tabs.setAttribute('role', 'tablist');
  const drawings = session.runs.map((run) => {
    const article = articleOf(session, run);
    article.setAttribute('role', 'tabpanel');
    makeNeeds(article, session, run);
    return makeDrawing(article.querySelector('.timeline'), session, run, go);
  });
  [...tabs.children].forEach((tab, at) => {
    tab.setAttribute('role', 'tab');
    tab.setAttribute('aria-controls', articleOf(session, session.runs[at]).id);
  });
  tabs.addEventListener('keydown', (key) => {
    const all = [...tabs.querySelectorAll('[role=tab]')];
    const now = all.indexOf(document.activeElement);
    const next = { ArrowRight: now + 1, ArrowLeft: now - 1, Home: 0, End: all.length - 1 }[key.key];
    if (now < 0 || next === undefined) return;
    key.preventDefault();
    const tab = all[(next + all.length) % all.length];
    go(tab.getAttribute('href').slice(1), { replace: true });
    tab.focus();
  });
  if (session.runs.length > 1) {
    const chooser = (label, names, chosen) => {
      const select = make('select', {}, ...names.map((name, at) => make('option', { value: at }, name)));
      select.addEventListener('change', () => drawings.forEach((drawing) => chosen(drawing, Number(select.value))));
      return make('label', {}, label, select);
    };
    const names = session.runs.map((run) => (run.name === 'none' ? 'as recorded' : run.name));
    tabs.after(make('div', { class: 'against' },
      chooser('outline ', names, (drawing, at) => drawing.outline(session.runs[at])),
      chooser('scale ', ['of each policy', 'of all policies'], (drawing, at) => drawing.scale(at === 1))));
  }
  for (const table of sections.get(session.id).querySelectorAll('table.sortable')) makeSortable(table);
  for (const box of sections.get(session.id).querySelectorAll('.table')) makeFoldable(box);
};

const show = (session, run) => {
  for (const [id, section] of sections) section.hidden = Boolean(overview) && id !== (session && session.id);
  if (!session) return;
  prepare(session);
  for (const each of session.runs) articleOf(session, each).hidden = each !== run;
  for (const [at, tab] of [...sections.get(session.id).querySelectorAll('[role=tab]')].entries()) {
    const chosen = session.runs[at] === run;
    tab.setAttribute('aria-selected', String(chosen));
    tab.tabIndex = chosen ? 0 : -1;
  }
};

const close = () => {
  if (panel.hidden) return;
  panel.hidden = true;
  document.body.classList.remove('beside');
  document.querySelector('tr.open')?.classList.remove('open');
  if (opener?.isConnected) opener.focus({ preventScroll: true });
  opener = null;
};

const away = () => go(location.hash.slice(1).split('/').slice(0, 2).join('/'), { replace: true });

const openPanel = (name, content) => {
  const active = document.activeElement;
  if (panel.hidden) opener = active && active !== document.body ? active : null;
  document.querySelector('tr.open')?.classList.remove('open');
  const row = document.getElementById(name);
  row?.classList.add('open');
  const rows = row ? [...row.parentElement.rows].filter((each) => !each.hidden) : [];
  const at = rows.indexOf(row);
  const step = (label, by) => {
    const to = rows[at + by];
    const button = make('button', { type: 'button', disabled: at < 0 || !to, 'aria-label': by < 0 ? 'Previous' : 'Next' }, label);
    button.addEventListener('click', () => {
      go(to.id, { replace: true });
      to.scrollIntoView({ block: 'nearest' });
      panel.querySelector(`[aria-label=${by < 0 ? 'Previous' : 'Next'}]`).focus();
    });
    return button;
  };
  const shut = make('button', { type: 'button', 'aria-label': 'Close' }, 'Close');
  shut.addEventListener('click', away);
  const count = at < 0 ? '' : make('span', {}, `${(at + 1).toLocaleString('en')} of ${rows.length.toLocaleString('en')}`);
  panel.replaceChildren(make('div', { class: 'steps' }, step('↑', -1), step('↓', 1), count, shut), ...content.filter((each) => each !== ''));
  panel.setAttribute('aria-label', panel.querySelector('h2').textContent);
  panel.hidden = false;
  panel.scrollTop = 0;
  document.body.classList.add('beside');
  panel.focus({ preventScroll: true });
};

const route = ({ scroll = false } = {}) => {
  let name = location.hash.slice(1);
  try {
    name = decodeURIComponent(name);
  } catch {
    name = '';
  }
  const [sessionId, runId, placeId] = name.split('/');
  const session = data.find((each) => each.id === sessionId) || (overview ? null : data[0]);
  const run = session && (session.runs.find((each) => each.id === runId) || session.runs[session.runs.length > 1 ? 1 : 0]);
  show(session, run);
  if (!session || !run || !placeId) {
    close();
    if (scroll && session) (runId ? sections.get(session.id).querySelector('.runs') : sections.get(session.id)).scrollIntoView();
    if (scroll && !session) overview?.scrollIntoView();
    return;
  }
  const need = run.needs.find((row) => row[0] === placeId);
  const commit = run.commits.find((row) => `commit-${row[0]}` === placeId);
  if (need) openPanel(name, needPanel(session, run, needOf(session, need)));
  else if (commit) openPanel(name, commitPanel(session, run, commitOf(session, commit)));
  else close();
  const row = document.getElementById(name);
  if (row) row.hidden = false;
  if (scroll) (row || articleOf(session, run)).scrollIntoView({ block: 'center' });
};

document.documentElement.classList.add('scripted');
for (const table of overview?.querySelectorAll('table.sortable') || []) makeSortable(table);
document.addEventListener('click', (click) => {
  const link = click.target.closest?.('a[href^="#"]');
  if (!link || click.ctrlKey || click.metaKey || click.shiftKey || click.button) return;
  click.preventDefault();
  const name = link.getAttribute('href').slice(1);
  const inPlace = link.getAttribute('role') === 'tab' || name.split('/').length > 2;
  go(name, { replace: link.getAttribute('role') === 'tab', scroll: !inPlace });
});
document.addEventListener('keydown', (key) => {
  if (key.key === 'Escape' && !panel.hidden) away();
});
window.addEventListener('popstate', () => route());
route({ scroll: Boolean(location.hash) });
