// Tries a report as a reader would, and tells the page around it what was wrong.
addEventListener('load', async () => {
  const all = (what, from = document) => [...from.querySelectorAll(what)];
  const shown = element => getComputedStyle(element).display !== 'none';
  const settle = () => new Promise(done => setTimeout(done, 20));
  const found = { width: innerWidth, dangling: [], twice: [], unsorted: [], sorted: 0, wide: [], unfolded: [], unopened: [] };
  const ids = all('[id]').map(e => e.id);
  found.twice = ids.filter((id, place) => ids.indexOf(id) < place);
  found.dangling = all('a').map(a => a.getAttribute('href')).filter(h => !h.startsWith('#') || !document.getElementById(h.slice(1)));
  found.loaded = performance.getEntriesByType('resource').map(r => r.name);
  found.foreign = all('img, iframe, object').map(e => e.outerHTML);
  if (all('script').length !== 3) found.foreign.push('scripts');
  const fits = where => {
    if (document.documentElement.scrollWidth > innerWidth) found.wide.push(where);
  };
  fits('overview');

  for (const table of all('table.sortable')) {
    for (const heading of [...table.tHead.rows[0].cells]) {
      const column = heading.cellIndex;
      for (const click of [1, 2]) {
        heading.querySelector('button').click();
        const order = heading.getAttribute('aria-sort');
        const sorted = all('[aria-sort]', table).length === 1 && ['ascending', 'descending'].includes(order);
        const cells = [...table.tBodies[0].rows].map(row => row.cells[column]);
        const sign = order === 'ascending' ? 1 : -1;
        let right = sorted;
        if (cells[0] && cells[0].dataset.v !== undefined) {
          const keys = cells.map(c => parseFloat(c.dataset.v));
          const known = keys.filter(k => !isNaN(k));
          right &&= keys.slice(0, known.length).every(k => !isNaN(k));
          right &&= known.every((k, i) => i === 0 || sign * (k - known[i - 1]) >= 0);
        } else if (!heading.classList.contains('n')) {
          const keys = cells.map(c => c.textContent.trim());
          right &&= keys.every((k, i) => i === 0 || sign * k.localeCompare(keys[i - 1]) >= 0);
        }
        if (!right) found.unsorted.push(heading.textContent.trim() + ' ' + order);
        found.sorted += 1;
      }
    }
  }

  const rows = all('table.tree tbody tr');
  const visible = () => rows.filter(shown).length;
  const before = visible();
  const fold = rows[0].querySelector('button.fold');
  fold.click();
  if (visible() !== 1 || fold.getAttribute('aria-expanded') !== 'false') found.unfolded.push('closed ' + visible());
  fold.click();
  if (visible() !== before) found.unfolded.push('open ' + visible());

  const paper = () => getComputedStyle(document.body).backgroundColor;
  found.paper = [paper()];
  document.getElementById('theme').click();
  found.paper.push(paper());

  for (const page of all('.page')) {
    location.hash = page.id;
    await settle();
    if (!shown(page) || shown(document.querySelector('main'))) found.unopened.push(page.id);
    fits(page.id);
  }
  location.hash = 'overview';
  await settle();
  if (!shown(document.querySelector('main')) || all('.page').some(shown)) found.unopened.push('overview');
  found.errors = errors;
  parent.postMessage(found, '*');
});
