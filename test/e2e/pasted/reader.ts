/** Acts as a newcomer who has a clone of the repository, a running service and a machine without Bun. */
import { execFileSync } from 'node:child_process'
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { freePort, printed, startCommand } from '../../support/process/process.ts'
import { type Client, createClient } from '../../support/service.ts'
import { type Block, ROOT } from './blocks.ts'
import { Terminal } from './terminal.ts'

/**
 * Names the packages that the programs in the code blocks of the pages import. The tests take them from test/clients,
 * not from npm.
 */
const PACKAGES = ['express', '@x402/core', '@x402/evm', '@x402/express']

export type Reader = AsyncDisposable & {
  agent: Client
  smtpPort: number
  /** Holds the port that replaces the port 4000 in the seller examples of the pages. */
  shopPort: number
  /** Opens a terminal in the clone. */
  openTerminal(): Terminal
  /** Replaces each occurrence of a text in the pasted blocks, as a reader replaces a placeholder. */
  fill(written: string, filled: string): void
  /** Returns the text of a block with its ports replaced and its placeholders filled in. */
  filled(block: Block): string
  /** Saves a file in the clone, and gives the folder `my-agent` the packages that its programs import. */
  save(path: string, text: string): void
  /** Holds the commands that `npm start` proposes. */
  proposed: string
}

/** Starts the service by `npm start`, and copies the source, so that the reader's files stay out of the repository. */
export async function startReader(): Promise<Reader> {
  const folder = mkdtempSync(join(tmpdir(), 'purser-pasted-'))
  const clone = join(folder, 'purser')
  copySource(clone)
  const { HOME = '' } = process.env
  const PATH = `${withoutBun(folder)}:${process.env.PATH}`
  const [port, smtpPort, shopPort] = [await freePort(), await freePort(), await freePort()]
  const service = startCommand(['npm', 'start'], {
    ...{ PATH, PORT: String(port), SMTP_PORT: String(smtpPort), DEVNET_PORT: '0' },
    ...{ DATA_DIR: join(folder, 'data'), LOG_LEVEL: 'warn' },
  })
  await printed(service, /Try:[\s\S]*\/v0\/messages\n/)
  const read = (pattern: RegExp) => pattern.exec(service.stdout())![1]!
  const key = read(/Project key\s+(loid-\w+)/)
  const api = `http://127.0.0.1:${port}`
  const shop = `http://127.0.0.1:${shopPort}`
  const fills: [written: string, filled: string][] = [
    ['loid-…', key],
    ['PAYER_KEY=0x…', `PAYER_KEY=${read(/Payer's key\s+(0x\w+)/)}`],
    ['http://127.0.0.1:3000', api],
    ['127.0.0.1:2525', `127.0.0.1:${smtpPort}`],
    ['http://127.0.0.1:4000', shop],
    ['http://localhost:4000', shop],
    ['https://shop.example.com', shop],
    ['app.listen(4000', `app.listen(${shopPort}`],
  ]
  // The example programs of the pages and the proxy for sellers read their ports and URLs from environment variables,
  // so the test can give them free ports.
  const env = { PATH, HOME, PORT: String(shopPort), URL: `${shop}/weather`, PURSER_URL: api }
  const terminals: Terminal[] = []
  return {
    agent: createClient(api, key),
    smtpPort,
    shopPort,
    openTerminal() {
      const PAY_TO = read(/Paid to\s+(0x\w+)/)
      const terminal = new Terminal({ cwd: clone, env: { ...env, PAY_TO } })
      terminals.push(terminal)
      return terminal
    },
    fill: (written, filled) => void fills.push([written, filled]),
    filled({ text, page }) {
      const done = fills.reduce((said, [written, filled]) => said.replaceAll(written, filled), text)
      if (done.includes('…')) throw new Error(`${page} has a placeholder without a value: ${done}`)
      return done
    },
    save(path, text) {
      link(join(clone, 'my-agent/node_modules'))
      writeFileSync(join(clone, path), text)
    },
    proposed: read(/Try:\n([\s\S]*)$/),
    async [Symbol.asyncDispose]() {
      await Promise.all(terminals.map((terminal) => terminal[Symbol.asyncDispose]()))
      await service[Symbol.asyncDispose]()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

function copySource(clone: string): void {
  const listed = execFileSync('git', ['ls-files', '-co', '--exclude-standard', '--', ':!test'], {
    cwd: ROOT,
    encoding: 'utf8',
  })
  for (const file of listed.split('\n')) {
    if (file === '' || !existsSync(join(ROOT, file))) continue
    mkdirSync(dirname(join(clone, file)), { recursive: true })
    cpSync(join(ROOT, file), join(clone, file))
  }
  symlinkSync(join(ROOT, 'node_modules'), join(clone, 'node_modules'))
}

/** Returns a folder with a program `bun` that fails. */
function withoutBun(folder: string): string {
  const bin = join(folder, 'bin')
  mkdirSync(bin)
  writeFileSync(join(bin, 'bun'), '#!/bin/sh\necho "bun: command not found" >&2\nexit 127\n')
  chmodSync(join(bin, 'bun'), 0o755)
  return bin
}

function link(modules: string): void {
  mkdirSync(join(modules, '@x402'), { recursive: true })
  for (const name of PACKAGES.filter((one) => !existsSync(join(modules, one)))) {
    symlinkSync(join(ROOT, 'test/clients/node_modules', name), join(modules, name))
  }
}
