// `bigfleet-web-dashboard` on its own, with whatever sources a test gives it.

import { createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { binary, Process } from './process';

export class Dashboard {
  private constructor(
    private readonly process: Process,
    readonly url: string,
  ) {}

  static async start(...flags: string[]): Promise<Dashboard> {
    const path = binary('bigfleet-web-dashboard', 'BIGFLEET_DASHBOARD_BIN');
    const process = new Process('bigfleet-web-dashboard', path, [
      '--listen=127.0.0.1:0',
      '--log-format=json',
      ...flags,
    ]);
    try {
      const [, addr] = await process.said(/"serving the dashboard","addr":"([^"]+)"/, 30);
      return new Dashboard(process, `http://${addr}`);
    } catch (error) {
      await process.stop();
      throw error;
    }
  }

  stop(): Promise<void> {
    return this.process.stop();
  }
}

/** Takes every connection and never says a word. */
export class Silence {
  private readonly sockets = new Set<Socket>();
  private readonly server: Server = createServer((socket) => {
    this.sockets.add(socket);
    socket.on('error', () => {});
    socket.on('close', () => this.sockets.delete(socket));
  });

  async start(): Promise<string> {
    await new Promise<void>((resolve) => this.server.listen(0, '127.0.0.1', resolve));
    return `127.0.0.1:${(this.server.address() as AddressInfo).port}`;
  }

  async stop(): Promise<void> {
    for (const socket of this.sockets) socket.destroy();
    await new Promise((resolve) => this.server.close(resolve));
  }
}

/** An address at which nobody is: taken for a moment, then left. */
export async function nobody(): Promise<string> {
  const silence = new Silence();
  const addr = await silence.start();
  await silence.stop();
  return addr;
}
