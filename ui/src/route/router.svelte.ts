// The path and query of the address bar, as state.

import { below, change, formatQuery, parseQuery, type Query } from './url';

const base = new URL(document.baseURI);

class Route {
  path = $state(below(base.pathname, location.pathname));
  query = $state.raw<Query>(parseQuery(location.search));
  /** Moves with every link that is taken, also back and forth, and not while a view is worked with. */
  arrivals = $state(0);

  read(): void {
    this.path = below(base.pathname, location.pathname);
    this.query = parseQuery(location.search);
  }

  arrive(): void {
    this.read();
    this.arrivals += 1;
  }
}

export const route = new Route();

/** A link within the app, under whatever base path it is served. */
export function href(path: string, query: Record<string, string | number | null | undefined> = {}): string {
  const prefix = base.pathname.endsWith('/') ? base.pathname.slice(0, -1) : base.pathname;
  return prefix + (path === '/' ? '/' : path) + formatQuery(query);
}

export function go(to: string): void {
  write(to, false);
  route.arrive();
}

function write(to: string, replace: boolean): void {
  if (replace) history.replaceState(null, '', to);
  else history.pushState(null, '', to);
}

/** Changes parameters of the present view. Typing replaces, choosing pushes. */
export function setQuery(by: Record<string, string | null>, replace = false): void {
  const query = change(route.query, by);
  if (formatQuery(query) === formatQuery(route.query)) return;
  write(href(route.path, query), replace);
  route.read();
}

/** Takes over clicks on links of the app; everything else is the browser's. */
export function listen(): void {
  addEventListener('popstate', () => route.arrive());
  document.addEventListener('click', (event) => {
    if (event.defaultPrevented || event.button !== 0) return;
    if (event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    const link = (event.target as Element | null)?.closest('a');
    if (!link || link.target || link.hasAttribute('download') || link.dataset.plain !== undefined) return;
    const url = new URL(link.href);
    if (url.origin !== location.origin || !url.pathname.startsWith(base.pathname)) return;
    const path = below(base.pathname, url.pathname);
    if (url.hash !== '' || path.startsWith('/api/') || path.startsWith('/auth/')) return;
    event.preventDefault();
    go(url.pathname + url.search);
    scrollTo(0, 0);
  });
}
