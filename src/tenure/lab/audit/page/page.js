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
