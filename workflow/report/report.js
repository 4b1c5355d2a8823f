// Tables sort by any column: click a heading, or Enter on it; again for the other way round.
(() => {
  const number = text => {
    const found = text.replace(/−/g, '-').replace(/[†,]/g, '').match(/^\s*[+-]?\d+(\.\d+)?/);
    return found ? parseFloat(found[0]) : null;
  };
  const key = row => cell => {
    const found = row.cells[cell];
    if (!found) return null;
    return found.dataset.sort !== undefined ? parseFloat(found.dataset.sort) : number(found.textContent);
  };
  const compare = (a, b, cell) => {
    const x = key(a)(cell), y = key(b)(cell);
    if (x !== null && y !== null && !isNaN(x) && !isNaN(y)) return x - y;
    if (x === null && y === null) return a.cells[cell].textContent.localeCompare(b.cells[cell].textContent);
    return x === null || isNaN(x) ? 1 : -1;
  };
  const sort = (table, head) => {
    const up = head.getAttribute('aria-sort') !== 'ascending';
    const rows = [...table.tBodies[0].rows];
    table.querySelectorAll('th').forEach(other => other.removeAttribute('aria-sort'));
    head.setAttribute('aria-sort', up ? 'ascending' : 'descending');
    rows.sort((a, b) => (up ? 1 : -1) * compare(a, b, head.cellIndex));
    rows.forEach(row => table.tBodies[0].appendChild(row));
  };
  document.querySelectorAll('table.sortable').forEach(table => table.querySelectorAll('th').forEach(head => {
    head.tabIndex = 0;
    head.title = 'sort';
    head.addEventListener('click', () => sort(table, head));
    head.addEventListener('keydown', event => event.key === 'Enter' && sort(table, head));
  }));
})();
