// An OpenID issuer that lets everybody in as whom the test says.

import { createHash, generateKeyPairSync, sign, type KeyObject } from 'node:crypto';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

export const CLIENT = 'bigfleet';
export const SECRET = 'a long secret';

const encode = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url');

export class Issuer {
  /** Claims of whoever signs in next. */
  claims: Record<string, unknown> = {};
  private readonly keys: { publicKey: KeyObject; privateKey: KeyObject } = generateKeyPairSync('ec', {
    namedCurve: 'P-256',
  });
  /** What is redeemed for a code: the claims, and the proof that the same browser asks. */
  private readonly codes = new Map<string, { claims: Record<string, unknown>; challenge: string }>();
  private readonly server: Server = createServer((request, response) => void this.serve(request, response));

  async start(): Promise<void> {
    await new Promise<void>((resolve) => this.server.listen(0, '127.0.0.1', resolve));
  }

  async stop(): Promise<void> {
    this.server.closeAllConnections();
    await new Promise((resolve) => this.server.close(resolve));
  }

  get url(): string {
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}`;
  }

  private async serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? '/', this.url);
    const json = (body: object, status = 200): void =>
      void response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
    if (url.pathname === '/.well-known/openid-configuration')
      return json({
        issuer: this.url,
        authorization_endpoint: `${this.url}/authorize`,
        token_endpoint: `${this.url}/token`,
        jwks_uri: `${this.url}/keys`,
      });
    if (url.pathname === '/keys')
      return json({ keys: [{ ...this.keys.publicKey.export({ format: 'jwk' }), kid: 'k', use: 'sig' }] });
    if (url.pathname === '/authorize') {
      const code = `code-${this.codes.size}`;
      const claims = { ...this.claims, nonce: url.searchParams.get('nonce') };
      this.codes.set(code, { claims, challenge: url.searchParams.get('code_challenge') ?? '' });
      const back = new URL(url.searchParams.get('redirect_uri') ?? '');
      back.searchParams.set('code', code);
      back.searchParams.set('state', url.searchParams.get('state') ?? '');
      return void response.writeHead(302, { location: back.href }).end();
    }
    if (url.pathname === '/token') {
      let text = '';
      for await (const part of request) text += String(part);
      const form = new URLSearchParams(text);
      const known = this.codes.get(form.get('code') ?? '');
      const proof = createHash('sha256')
        .update(form.get('code_verifier') ?? '')
        .digest('base64url');
      if (known?.challenge !== proof) return json({ error: 'invalid_grant' }, 400);
      const now = Math.floor(Date.now() / 1000);
      const claims = { iss: this.url, aud: CLIENT, iat: now, exp: now + 600, ...known.claims };
      const signed = `${encode({ alg: 'ES256', kid: 'k' })}.${encode(claims)}`;
      const signature = sign('sha256', Buffer.from(signed), {
        key: this.keys.privateKey,
        dsaEncoding: 'ieee-p1363',
      });
      return json({
        id_token: `${signed}.${signature.toString('base64url')}`,
        token_type: 'Bearer',
        access_token: 'x',
      });
    }
    json({ error: `no ${url.pathname}` }, 404);
  }
}
