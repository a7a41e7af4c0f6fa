// Tries a report as a reader would, and tells the page around it what was wrong.
addEventListener('load', async () => {
  const all = (what, from = document) => [...from.querySelectorAll(what)];
  const displayed = element => getComputedStyle(element).display !== 'none';
  const settle = () => new Promise(done => setTimeout(done, 20));
  const overview = document.getElementById('overview');
  const found = { width: innerWidth, sorted: 0, axed: 0 };
  for (const list of ['dangling', 'twice', 'unsorted', 'wide', 'unfolded', 'unopened', 'unlabelled', 'hidden', 'axe', 'stuck', 'unprinted']) found[list] = [];
  const ids = all('[id]').map(e => e.id);
  found.twice = ids.filter((id, place) => ids.indexOf(id) < place);
  found.dangling = all('a').map(a => a.getAttribute('href')).filter(h => !h.startsWith('#') || !document.getElementById(h.slice(1)));
  found.loaded = performance.getEntriesByType('resource').map(r => r.name);
  found.foreign = all('img, iframe, object').map(e => e.outerHTML);
  if (all('script').length !== 4) found.foreign.push('scripts');

  // Nothing scrolls sideways, neither the page nor what is in it.
  const fits = where => {
    if (document.documentElement.scrollWidth > innerWidth) found.wide.push(where);
    for (const box of all('.box, .canvas, .card, pre, ol')) {
      if (box.checkVisibility() && box.scrollWidth > box.clientWidth + 1) found.wide.push(`${where}: ${box.className} ${box.getAttribute('aria-label')}`);
    }
  };
  const open = wanted => all('details').forEach(part => part.open = wanted);
  fits('overview');
  open(true);
  fits('overview, opened');

  // Verdicts are there to be seen at every width, and cells of cards have labels.
  for (const verdict of all('.answers dd, td.exact, td.different', overview)) {
    const place = verdict.getBoundingClientRect();
    if (!verdict.checkVisibility() || place.width < 20 || place.right > innerWidth + 1) found.hidden.push(verdict.textContent);
  }
  for (const cell of all('td', overview)) {
    const card = getComputedStyle(cell.closest('table')).display === 'block';
    const label = getComputedStyle(cell, '::before').content;
    if (card && cell.closest('table').tHead && displayed(cell) && !cell.matches('.bars') && ['none', '""'].includes(label)) found.unlabelled.push(cell.outerHTML);
  }

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

  const type = (input, text) => { input.value = text; input.dispatchEvent(new Event('input', { bubbles: true })); };
  const filter = document.querySelector('input.filter');
  const names = all('tbody tr', filter.closest('section')).map(row => row.cells[0].textContent);
  type(filter, names[0].slice(0, 6));
  const left = all('tbody tr', filter.closest('section')).filter(row => !row.hidden).length;
  if (left !== names.filter(n => n.toLowerCase().includes(names[0].slice(0, 6).trim().toLowerCase())).length) found.stuck.push(`${left} rows after a search`);
  type(filter, '');

  // The tree of regions: by keys and by search.
  const blocks = all('#icicle > *'), key = name => document.activeElement.dispatchEvent(new KeyboardEvent('keydown', { key: name, bubbles: true, cancelable: true }));
  const reached = () => all('#icicle > [tabindex="0"]');
  if (reached().length !== 1) found.stuck.push(`${reached().length} blocks in the order of tabs`);
  blocks[0].focus();
  key('ArrowDown');
  const second = document.activeElement;
  if (blocks.length > 1 && second.getAttribute('aria-level') !== '2') found.stuck.push('ArrowDown');
  key('Enter');
  if (blocks.length > 1 && Math.abs(second.getBoundingClientRect().width - document.getElementById('icicle').clientWidth) > 2) found.stuck.push('Enter');
  key('Escape');
  key('ArrowUp');
  if (document.activeElement !== blocks[0]) found.stuck.push('ArrowUp');
  const find = document.getElementById('find');
  type(find, blocks.at(-1).textContent);
  if (!all('#icicle > .hit').includes(blocks.at(-1)) || !document.getElementById('found').textContent.includes('found')) found.stuck.push('search');
  type(find, '');

  const rows = all('table.tree tbody tr');
  const visible = () => rows.filter(displayed).length;
  const before = visible();
  const fold = rows[0].querySelector('button.fold');
  fold.click();
  if (visible() !== 1 || fold.getAttribute('aria-expanded') !== 'false') found.unfolded.push('closed ' + visible());
  fold.click();
  if (visible() !== before) found.unfolded.push('open ' + visible());

  open(false);
  dispatchEvent(new Event('beforeprint'));
  if (all('details:not([open])').length) found.unprinted.push('closed while printing');
  dispatchEvent(new Event('afterprint'));
  if (all('details[open]').length) found.unprinted.push('open after printing');

  // What keeps people out, by axe-core, in both themes.
  const paper = () => getComputedStyle(document.body).backgroundColor;
  const look = async where => {
    const { violations } = await axe.run(document, { resultTypes: ['violations'] });
    found.axed += 1;
    for (const { id, nodes } of violations) found.axe.push(`${where}: ${id}: ${nodes[0].html.slice(0, 200)} ${nodes[0].failureSummary}`);
  };
  const both = async where => {
    for (const theme of [1, 2]) {
      await look(`${where}, ${document.documentElement.dataset.theme || 'by the system'}`);
      document.getElementById('theme').click();
      await settle();
    }
  };
  found.paper = [paper()];
  open(true);
  await both('overview');
  document.getElementById('theme').click();
  found.paper.push(paper());

  for (const [place, page] of all('.page').entries()) {
    location.hash = page.id;
    await settle();
    if (!displayed(page) || displayed(overview)) found.unopened.push(page.id);
    fits(page.id);
    if (place < 1) await both(page.id);
  }
  location.hash = 'overview';
  await settle();
  if (!displayed(overview) || all('.page').some(displayed)) found.unopened.push('overview');
  found.errors = errors;
  parent.postMessage(found, '*');
});
