import { afterAll, describe, expect, test } from 'bun:test'
import { existsSync, mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { devnetClient } from '../../../workers/devnet/contracts.ts'
import { type Devnet, startDevnet } from '../../../workers/devnet/devnet.ts'
import {
  authorize,
  gasWallet,
  payer,
  settle,
  signed,
  usdc,
} from '../../support/till/devnetPayment.ts'
import { waitFor } from '../../support/waitFor.ts'
import '../../support/long.ts'

const warnings: string[] = []
const log = { info() {}, warn: (_fields: object, message: string) => warnings.push(message) }
const directory = mkdtempSync(join(tmpdir(), 'devnet-'))
const running: Devnet[] = []

async function start(
  name: string,
  more: { port?: number; blockTimeS?: number; log?: typeof log } = {},
) {
  const devnet = await startDevnet({ port: 0, stateFile: join(directory, name), log, ...more })
  running.push(devnet)
  return devnet
}

afterAll(async () => {
  await Promise.all(running.map((devnet) => devnet.stop()))
  rmSync(directory, { recursive: true })
})

describe('a devnet keeps its state over restarts and crashes', () => {
  async function pay(devnet: Pick<Devnet, 'rpcUrl'>) {
    const authorization = authorize()
    const { transactionHash } = await settle(devnet, authorization, await signed(authorization))
    return { nonce: authorization.nonce, transactionHash }
  }

  async function expectPaid(
    devnet: Pick<Devnet, 'rpcUrl'>,
    { nonce, transactionHash }: Awaited<ReturnType<typeof pay>>,
  ) {
    const client = devnetClient(devnet.rpcUrl)
    const receipt = await client.getTransactionReceipt({ hash: transactionHash })
    expect(receipt.status).toBe('success')
    const args = [payer.address, nonce] as const
    expect(await client.readContract({ ...usdc, functionName: 'authorizationState', args })).toBe(
      true,
    )
    const logs = await client.getLogs({ address: usdc.address, fromBlock: 0n, toBlock: 'latest' })
    expect(logs.some((entry) => entry.transactionHash === transactionHash)).toBe(true)
    expect(await client.getTransactionCount({ address: gasWallet.address })).toBe(1)
  }

  test('a devnet (local test chain) keeps its state over a stop and a start, and then settles the next payment', async () => {
    const first = await start('restart')
    const payment = await pay(first)
    await Promise.all([first.stop(), first.stop()])
    expect(existsSync(join(directory, 'restart.pid'))).toBe(false)
    await expect(devnetClient(first.rpcUrl).getChainId()).rejects.toThrow()

    const second = await start('restart')
    await expectPaid(second, payment)
    await pay(second)
  })

  test('the clock of a devnet (local test chain) is not behind the clock of the machine', async () => {
    const devnet = await start('clock')
    const before = Math.floor(Date.now() / 1000)
    const { timestamp } = await devnetClient(devnet.rpcUrl).getBlock({ blockTag: 'pending' })
    expect(Number(timestamp)).toBeGreaterThanOrEqual(before)
  })

  test('a devnet keeps its state over a restart, even if the state contains contract code of 12 MB', async () => {
    const first = await start('large')
    const address = `0x${'51'.repeat(20)}` as const
    await devnetClient(first.rpcUrl).setCode({ address, bytecode: `0x${'5b'.repeat(12_000_000)}` })
    await first.stop()
    const second = await start('large')
    const code = await devnetClient(second.rpcUrl).getCode({ address })
    expect(code?.length).toBe(2 + 24_000_000)
  })

  /** Starts a devnet in a separate service process, so that a test can kill the process. */
  async function startService(name: string) {
    const stateFile = join(directory, name)
    const module = join(import.meta.dir, '../../../workers/devnet/devnet.ts')
    const script = `
      const { startDevnet } = await import(${JSON.stringify(module)})
      const log = { info() {}, warn() {} }
      const devnet = await startDevnet({ port: 0, stateFile: ${JSON.stringify(stateFile)}, log })
      process.stdout.write(devnet.rpcUrl)
      setInterval(() => {}, 1000)
    `
    // The environment variables name an HTTP proxy at an address where no process listens, so the devnet must ignore
    // them.
    const env = { HTTP_PROXY: 'http://127.0.0.1:1', ANVIL_ACCOUNTS: '1' }
    const child = Bun.spawn([process.execPath, '-e', script], { stdout: 'pipe', env })
    const { value } = await child.stdout.getReader().read()
    const rpcUrl = new TextDecoder().decode(value)
    return { child, stateFile, devnet: { rpcUrl } }
  }

  test('if the service of a devnet is killed with kill -9, the next service saves the state and stops the orphaned anvil process', async () => {
    const { child, devnet } = await startService('killed')
    const payment = await pay(devnet)
    child.kill('SIGKILL')
    await child.exited
    expect(await devnetClient(devnet.rpcUrl).getChainId()).toBe(84532)
    await expectPaid(await start('killed'), payment)
    expect(warnings).toContain('devnet of a killed service found')
    await expect(devnetClient(devnet.rpcUrl).getChainId()).rejects.toThrow()
  })

  test('if a devnet’s service and anvil are killed with kill -9 after the state file is written, the devnet keeps its state', async () => {
    const { child, stateFile, devnet } = await startService('killedBoth')
    const before = statSync(stateFile).mtimeMs
    const payment = await pay(devnet)
    while (statSync(stateFile).mtimeMs === before) await Bun.sleep(20)
    const { pid } = await Bun.file(`${stateFile}.pid`).json()
    process.kill(pid, 'SIGKILL')
    child.kill('SIGKILL')
    await child.exited
    await expectPaid(await start('killedBoth'), payment)
  })

  test('a second service cannot load the state of a devnet while another running service uses the state', async () => {
    const { child, devnet } = await startService('shared')
    await expect(start('shared')).rejects.toThrow(`in use by process ${child.pid}`)
    expect(await devnetClient(devnet.rpcUrl).getChainId()).toBe(84532)
    child.kill('SIGTERM')
    await child.exited
    await (await start('shared')).stop()
  })

  test('a devnet keeps its state if anvil crashes, and stopping an ended devnet throws no error', async () => {
    const first = await start('crashed')
    const { pid } = await Bun.file(join(directory, 'crashed.pid')).json()
    process.kill(pid, 'SIGKILL')
    expect(await first.ended).toBe('anvil ended (SIGKILL)')
    await first.stop()
    await pay(await start('crashed'))
  })

  test('a devnet does not start with an invalid state file, and the invalid file is kept', async () => {
    const stateFile = join(directory, 'broken')
    writeFileSync(stateFile, '0x1234')
    await expect(start('broken')).rejects.toThrow('cannot be loaded')
    expect(await Bun.file(stateFile).text()).toBe('0x1234')
  })
})

test('a devnet does not start on a port that is already in use', async () => {
  const server = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: () => new Response('') })
  try {
    await expect(start('port', { port: server.port ?? 0 })).rejects.toThrow(
      `port ${server.port} is taken`,
    )
  } finally {
    await server.stop(true)
  }
})

test('a devnet with a block time mines a sent transaction, and also mines empty blocks', async () => {
  const devnet = await start('interval', { blockTimeS: 1 })
  const client = devnetClient(devnet.rpcUrl)
  const authorization = authorize()
  const { blockNumber } = await settle(devnet, authorization, await signed(authorization))
  while ((await client.getBlockNumber({ cacheTime: 0 })) <= blockNumber) await Bun.sleep(20)
})

test('if the devnet cannot save its state, the log names the reason in one line without a stack trace', async () => {
  const lines: [object, string][] = []
  const own = {
    info() {},
    warn: (fields: object, message: string) => lines.push([fields, message]),
  }
  const folder = join(directory, 'unsaved.new')
  const devnet = await start('unsaved', { log: own })
  mkdirSync(folder)
  try {
    const [fields, message] = await waitFor('a warning', () => lines[0])
    expect(message).toBe('devnet state not saved')
    expect(fields).toEqual({ reason: expect.stringMatching(/^EISDIR.*$/) })
  } finally {
    rmSync(folder, { recursive: true })
    await devnet.stop()
  }
})

test('the devnets in these tests log no warning, except about a devnet that a killed service left running', () => {
  expect(new Set(warnings)).toEqual(new Set(['devnet of a killed service found']))
})
