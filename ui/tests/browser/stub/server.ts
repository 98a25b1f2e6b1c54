// Serves the built app and a fleet of fixtures in any state, under any base path.

import { readFileSync, existsSync, statSync } from 'node:fs';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { extname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Fleet } from './fleet';

const DIST = fileURLToPath(new URL('../../../dist', import.meta.url));
const KINDS: Record<string, string> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript',
  '.css': 'text/css',
  '.svg': 'image/svg+xml',
};
/** What the real server sends; the app must live with it. Its last word is where frames may come from. */
const CSP =
  "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; font-src 'self'; connect-src 'self'; worker-src 'self'; manifest-src 'self'; base-uri 'self'; frame-ancestors 'none'; form-action 'self'; frame-src ";

export type Answer = { status?: number; body: unknown } | 'hang';
/** `bearer` is the secret that a request carries. */
export type Handler = (path: string, query: URLSearchParams, bearer?: string) => Answer | undefined;

export class Stub {
  fleet = new Fleet();
  /** Asked first; `undefined` leaves it to the fleet. */
  override: Handler = () => undefined;
  /** Whether `/stream` is served. */
  streaming = true;
  base = '/';
  /** Whose pages may be framed: those of Grafana, where it is wired. */
  frames = "'none'";
  /** The app that it serves. */
  page = 'index.html';
  readonly asked: string[] = [];
  readonly posts: { path: string; body: unknown; authorization: string | undefined }[] = [];
  readonly streams = new Set<ServerResponse>();
  private server: Server;
  private id = 0;

  constructor() {
    this.server = createServer((request, response) => this.serve(request, response));
  }

  async start(): Promise<void> {
    await new Promise<void>((resolve) => this.server.listen(0, '127.0.0.1', resolve));
  }

  async stop(): Promise<void> {
    this.server.closeAllConnections();
    await new Promise((resolve) => this.server.close(resolve));
  }

  reset(): void {
    this.fleet = new Fleet();
    this.override = () => undefined;
    this.streaming = true;
    this.base = '/';
    this.frames = "'none'";
    this.asked.length = 0;
    this.posts.length = 0;
    for (const stream of this.streams) stream.end();
    this.streams.clear();
  }

  url(path: string): string {
    const { port } = this.server.address() as AddressInfo;
    return `http://127.0.0.1:${port}${this.base.slice(0, -1)}${path}`;
  }

  /** Tells every stream; those that do not carry the topic ignore it. */
  tell(event: string, data: unknown): void {
    this.id += 1;
    for (const stream of this.streams)
      stream.write(`event: ${event}\nid: 1.${this.id}\ndata: ${JSON.stringify(data)}\n\n`);
  }

  private serve(request: IncomingMessage, response: ServerResponse): void {
    const url = new URL(request.url ?? '/', 'http://stub');
    if (!url.pathname.startsWith(this.base)) {
      response.writeHead(404).end('outside of the base path');
      return;
    }
    const path = url.pathname.slice(this.base.length);
    if (path.startsWith('api/')) this.api(path.slice(4), url.searchParams, request, response);
    else this.file(path, response);
  }

  private file(path: string, response: ServerResponse): void {
    const file = join(DIST, path);
    const found = path !== '' && file.startsWith(DIST) && existsSync(file) && statSync(file).isFile();
    const name = found ? file : join(DIST, this.page);
    const kind = KINDS[extname(name)] ?? 'application/octet-stream';
    let body: Buffer | string = readFileSync(name);
    if (kind.startsWith('text/html')) body = body.toString().replace('<base href="/">', `<base href="${this.base}">`);
    response.writeHead(200, { 'content-type': kind, 'content-security-policy': CSP + this.frames }).end(body);
  }

  private api(path: string, query: URLSearchParams, request: IncomingMessage, response: ServerResponse): void {
    this.asked.push(path + (query.size > 0 ? `?${query}` : ''));
    const special = this.override(path, query, request.headers.authorization?.replace(/^Bearer /, ''));
    if (special === 'hang') return;
    if (request.method === 'POST') return this.post(path, request, response, special);
    if (path === 'stream' && special === undefined) return this.stream(request, response);
    const answer = special ?? this.plain(path, query);
    response.writeHead(answer.status ?? 200, { 'content-type': 'application/json' }).end(JSON.stringify(answer.body));
  }

  private post(path: string, request: IncomingMessage, response: ServerResponse, special: Answer | undefined): void {
    let text = '';
    request.on('data', (part: Buffer) => (text += part.toString()));
    request.on('end', () => {
      this.posts.push({
        path,
        body: text === '' ? null : JSON.parse(text),
        authorization: request.headers.authorization,
      });
      const answer = special === undefined || special === 'hang' ? { status: 202, body: { accepted: true } } : special;
      response.writeHead(answer.status ?? 200, { 'content-type': 'application/json' }).end(JSON.stringify(answer.body));
    });
  }

  private stream(request: IncomingMessage, response: ServerResponse): void {
    if (!this.streaming) {
      response
        .writeHead(503, { 'content-type': 'application/json' })
        .end(JSON.stringify({ error: 'not wired: start the dashboard with --coordinator-addr' }));
      return;
    }
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    response.write(`event: heartbeat\ndata: {"nowUnixNanos":${Date.now()}000000}\n\n`);
    this.streams.add(response);
    request.on('close', () => this.streams.delete(response));
  }

  /** What the fleet says, whatever the override. */
  plain(path: string, query: URLSearchParams): { status?: number; body: unknown } {
    const text = (name: string): string | undefined => query.get(name) ?? undefined;
    const shard = text('shard') ?? 'shard-0';
    const limit = Number(text('limit') ?? 500);
    const fleet = this.fleet;
    const fixed: Record<string, () => unknown> = {
      config: () => fleet.config(),
      'fleet/overview': () => fleet.overview(),
      'fleet/actions': () => fleet.actions(),
      shards: () => fleet.shards(),
      clusters: () => fleet.clusters(text('after'), limit, text('search') ?? ''),
      'available-capacity': () => fleet.available(),
      topology: () => fleet.topology(),
      'shard-reports': () => fleet.reports(),
      needs: () => fleet.needs(shard, text('cluster'), limit),
      'finops/snapshot': () => fleet.finops(),
      'finops/trend': () => fleet.trend(),
      'finops/shard': () => fleet.finopsShard(shard),
      'finops/savings': () => fleet.savings(shard),
      machines: () =>
        fleet.machines(
          shard,
          limit,
          text('page'),
          (one) =>
            (!text('state') || one.state === text('state')) &&
            (!text('cluster') || one.cluster === text('cluster')) &&
            one.id.startsWith(text('prefix') ?? ''),
        ),
      sessions: () => fleet.sessions(shard),
      decisions: () =>
        fleet.decisions(
          shard,
          limit,
          (one) =>
            (!text('kind') || one.kind === text('kind')) && (!text('machine') || one.machineId === text('machine')),
        ),
      explain: () => fleet.explain(shard, fleet.need(0)),
      whatif: () => fleet.whatif(shard),
    };
    const make = fixed[path];
    if (make) return { body: make() };
    const parts = path.split('/').map(decodeURIComponent);
    if (parts[0] === 'shards')
      return { body: parts[2] === 'trends' ? fleet.trends(parts[1] ?? '') : fleet.shard(parts[1] ?? '') };
    if (parts[0] === 'clusters') return { body: fleet.clusterDetail(parts[1] ?? '') };
    if (parts[0] === 'machines') return { body: fleet.machineDetail(parts[1] ?? '', parts[2] ?? '') };
    return { status: 404, body: { error: `no such route: ${path}` } };
  }
}
