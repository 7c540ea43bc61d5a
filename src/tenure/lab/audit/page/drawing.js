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
