'use strict';
(() => {
  const root = document.documentElement;
  root.classList.add('scripted');
  const all = (what, from = document) => [...from.querySelectorAll(what)];
  const store = area => ({
    get: key => { try { return area().getItem(key); } catch { return null; } },
    set: (key, value) => { try { area().setItem(key, value); } catch { /* pages from files may not */ } },
  });
  const kept = store(() => localStorage), tab = store(() => sessionStorage);
  const start = kept.get('cere-theme');
  if (start === 'light' || start === 'dark') root.dataset.theme = start;
  document.getElementById('theme').addEventListener('click', () => {
    const system = matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light';
    root.dataset.theme = (root.dataset.theme || system) === 'dark' ? 'light' : 'dark';
    kept.set('cere-theme', root.dataset.theme);
  });

  // Tables: cells know their labels, for cards on narrow screens, which are tables for screen readers all the same.
  for (const table of all('table')) {
    const labels = table.tHead ? [...table.tHead.rows[0].cells].map(cell => cell.textContent.trim()) : [];
    table.setAttribute('role', 'table');
    for (const part of all('thead, tbody', table)) part.setAttribute('role', 'rowgroup');
    for (const row of table.rows) {
      row.setAttribute('role', 'row');
      for (const cell of row.cells) {
        const head = row.parentElement === table.tHead;
        cell.setAttribute('role', head ? 'columnheader' : cell.tagName === 'TH' ? 'rowheader' : 'cell');
        if (cell.tagName === 'TD' && labels[cell.cellIndex]) cell.dataset.l = labels[cell.cellIndex];
      }
    }
  }

  // A column's heading sorts by it, numbers from the largest, what is unknown last.
  for (const table of all('table.sortable')) {
    const headings = [...table.tHead.rows[0].cells];
    headings.forEach((heading, column) => heading.querySelector('button').addEventListener('click', () => {
      const numeric = heading.classList.contains('n');
      const now = heading.getAttribute('aria-sort');
      const descending = now ? now === 'ascending' : numeric;
      const sign = descending ? -1 : 1;
      const key = row => {
        const cell = row.cells[column];
        return numeric ? parseFloat(cell.dataset.v ?? cell.textContent.replace(/[^\d.]/g, '')) : cell.textContent.trim();
      };
      const compare = (a, b) => {
        if (!numeric) return sign * a.localeCompare(b);
        if (isNaN(a) || isNaN(b)) return isNaN(a) - isNaN(b);
        return sign * (a - b);
      };
      const body = table.tBodies[0];
      const rows = [...body.rows].map(row => [key(row), row]);
      rows.sort((a, b) => compare(a[0], b[0]));
      body.append(...rows.map(row => row[1]));
      headings.forEach(other => other.removeAttribute('aria-sort'));
      heading.setAttribute('aria-sort', descending ? 'descending' : 'ascending');
    }));
  }

  // The pages of the regions: to the one before and the one after.
  const pages = all('.page');
  pages.forEach((page, place) => {
    const links = [[pages[place - 1], 'Previous'], [pages[place + 1], 'Next']].filter(link => link[0]);
    const span = document.createElement('span');
    for (const [other, text] of links) {
      const link = document.createElement('a');
      link.href = `#${other.id}`;
      link.textContent = text;
      span.append(link);
    }
    page.querySelector('nav').append(span);
  });

  // A search above a table leaves the rows whose names have it.
  for (const input of all('input.filter')) {
    const tools = input.closest('.tools'), rows = [...tools.nextElementSibling.querySelector('tbody').rows];
    input.addEventListener('input', () => {
      const text = input.value.trim().toLowerCase();
      for (const row of rows) row.hidden = !row.cells[0].textContent.toLowerCase().includes(text);
      const left = rows.filter(row => !row.hidden).length;
      tools.querySelector('.hits').textContent = text ? `${left} of ${rows.length} regions` : '';
    });
  }

  // Tree: a fold hides what lies deeper, up to the next row of its own depth.
  const depth = row => Number(row.dataset.depth);
  for (const table of all('table.tree')) {
    const rows = [...table.tBodies[0].rows];
    const show = () => {
      let closed = Infinity;
      for (const row of rows) {
        if (depth(row) <= closed) closed = Infinity;
        row.hidden = closed < Infinity;
        const fold = row.querySelector('button.fold');
        if (!row.hidden && fold && fold.getAttribute('aria-expanded') === 'false') closed = depth(row);
      }
    };
    for (const row of rows) {
      const fold = row.querySelector('button.fold');
      if (!fold) continue;
      if (rows.length > 60 && depth(row) >= 2) fold.setAttribute('aria-expanded', 'false');
      fold.addEventListener('click', () => {
        fold.setAttribute('aria-expanded', String(fold.getAttribute('aria-expanded') === 'false'));
        show();
      });
    }
    show();
  }

  const icicle = document.getElementById('icicle');
  if (icicle) draw(icicle, all('table.tree tbody tr'));

  // The tree of regions as blocks, from the rows of its table.
  function draw(icicle, rows) {
    const HIGH = 27, line = [];
    const nodes = rows.map(row => {
      const [name, own, inclusive, entered] = row.cells, bar = row.querySelector('.bars i').style;
      const value = which => parseFloat(bar.getPropertyValue(which)) || 0;
      const node = {
        name: name.textContent.trim(), depth: depth(row), own: value('--o'), width: value('--w'), below: [],
        words: `${own.textContent} own time, ${inclusive.textContent} with what it calls, entered ${entered.textContent} times`,
      };
      line.length = node.depth;
      node.above = line[node.depth - 1];
      line.push(node);
      if (node.above) node.above.below.push(node);
      return node;
    });
    if (!nodes.length) return;
    // A region may be below itself in the tree: parts are never wider than the whole.
    for (const node of nodes) {
      const sum = node.below.reduce((sum, below) => sum + below.width, 0);
      node.scale = sum > node.width && sum > 0 ? node.width / sum : 1;
    }
    const top = nodes[0];
    let zoomed = top, active = top;
    icicle.setAttribute('role', 'tree');
    icicle.setAttribute('aria-label', 'Regions under the regions that call them');
    for (const node of nodes) {
      const block = node.block = document.createElement('div');
      block.setAttribute('role', 'treeitem');
      block.setAttribute('aria-level', node.depth + 1);
      block.setAttribute('aria-label', `${node.name}: ${node.words}`);
      block.tabIndex = -1;
      block.title = `${node.name}\n${node.words}`;
      block.textContent = node.name;
      block.style.setProperty('--o', `${node.width > 0 ? 100 * node.own / node.width : 0}%`);
      block.addEventListener('click', () => { focus(node); zoom(node); });
      icicle.append(block);
    }
    const focus = node => {
      active.block.tabIndex = -1;
      active = node;
      node.block.tabIndex = 0;
      node.block.focus({ preventScroll: true });
    };
    const place = (node, left, width) => {
      const style = node.block.style;
      node.shown = width > 0.08;
      style.display = node.shown ? '' : 'none';
      node.block.classList.toggle('thin', width < 2.5);
      style.left = `${left}%`;
      style.width = `${width}%`;
      style.top = `${HIGH * node.depth}px`;
      let deepest = node.shown ? node.depth : 0;
      for (const below of node.below) {
        const part = node.width > 0 ? width * below.width * node.scale / node.width : 0;
        deepest = Math.max(deepest, place(below, left, part));
        left += part;
      }
      return deepest;
    };
    const zoom = node => {
      zoomed = node;
      for (const other of nodes) { other.shown = false; other.block.style.display = 'none'; }
      let deepest = place(node, 0, 100);
      for (let above = node.above; above; above = above.above) {
        above.shown = true;
        Object.assign(above.block.style, { display: '', left: '0', width: '100%', top: `${HIGH * above.depth}px` });
      }
      icicle.style.height = `${HIGH * (deepest + 1)}px`;
      if (!active.shown) { active.block.tabIndex = -1; active = node; }
      active.block.tabIndex = 0;
    };
    icicle.addEventListener('keydown', event => {
      const siblings = active.above ? active.above.below.filter(n => n.shown) : [active];
      const at = siblings.indexOf(active);
      const to = {
        ArrowUp: active.above, ArrowDown: active.below.find(n => n.shown),
        ArrowLeft: siblings[at - 1], ArrowRight: siblings[at + 1], Home: top,
      }[event.key];
      if (to) focus(to);
      else if (event.key === 'Enter' || event.key === ' ') zoom(active);
      else if (event.key === 'Escape') zoom(zoomed.above || top);
      else if (!event.key.startsWith('Arrow')) return;
      event.preventDefault();
    });
    document.getElementById('whole').addEventListener('click', () => zoom(top));
    document.getElementById('find').addEventListener('input', event => {
      const text = event.target.value.trim().toLowerCase();
      const hit = node => text && node.name.toLowerCase().includes(text);
      const covered = node => hit(node) ? node.width : node.below.reduce((sum, below) => sum + covered(below), 0);
      for (const node of nodes) {
        node.block.classList.toggle('hit', Boolean(hit(node)));
        node.block.classList.toggle('off', Boolean(text) && !hit(node));
      }
      const hits = nodes.filter(hit).length;
      document.getElementById('found').textContent = text ? `${hits} found, ${Math.min(100, covered(top)).toFixed(1)} % of the run time` : '';
    });
    zoom(top);
  }

  // Print: what is folded is shown.
  const closed = [];
  addEventListener('beforeprint', () => {
    for (const part of all('details:not([open])')) { part.open = true; closed.push(part); }
  });
  addEventListener('afterprint', () => { while (closed.length) closed.pop().open = false; });

  // Live: a served page asks for the state of the store, and renews itself when that changes.
  const live = document.body.dataset.live;
  if (live === undefined) return;
  const busy = document.getElementById('busy'), parts = all('details');
  const open = (tab.get('cere-open') || '').split(',');
  parts.forEach((part, place) => {
    if (open.includes(String(place))) part.open = true;
    part.addEventListener('toggle', () => tab.set('cere-open', parts.flatMap((p, i) => p.open ? [i] : []).join()));
  });
  const ask = async () => {
    try {
      const answer = await (await fetch('/state', { cache: 'no-store' })).json();
      busy.textContent = answer.busy ? `live: ${answer.busy} is at work` : 'live';
      // A page that nobody looks at waits.
      if (answer.state !== live && !document.hidden) return location.reload();
    } catch {
      busy.textContent = 'the server has ended';
    }
    setTimeout(ask, 2000);
  };
  ask();
})();
