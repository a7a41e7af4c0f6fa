'use strict';
(() => {
  const root = document.documentElement;
  const kept = {
    get: () => { try { return localStorage.getItem('cere-theme'); } catch { return null; } },
    set: theme => { try { localStorage.setItem('cere-theme', theme); } catch { /* pages from files may not */ } },
  };
  const start = kept.get();
  if (start === 'light' || start === 'dark') root.dataset.theme = start;
  document.getElementById('theme').addEventListener('click', () => {
    const system = matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light';
    root.dataset.theme = (root.dataset.theme || system) === 'dark' ? 'light' : 'dark';
    kept.set(root.dataset.theme);
  });

  // Tables: a column's heading sorts by it, numbers from the largest, what is unknown last.
  for (const table of document.querySelectorAll('table.sortable')) {
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

  // Tree: a fold hides what lies deeper, up to the next row of its own depth.
  for (const table of document.querySelectorAll('table.tree')) {
    const rows = [...table.tBodies[0].rows];
    const depth = row => Number(row.dataset.depth);
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
})();
