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
