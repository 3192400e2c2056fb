/**
 * Runs the embedded devnet (a local test chain): one anvil process with chain id 84532, USDC and Multicall3. The state
 * of the chain survives restarts. The devnet is for development and tests. Signatures made for the devnet are worthless
 * on Base.
 *
 * anvil's own option `--state` writes the chain state only on exit, or at intervals but not atomically. Therefore this
 * module fetches the chain state over RPC at most a second after each block. The module writes each state to a new
 * file, and then renames the new file over the old one, which is atomic.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { dirname, resolve } from 'node:path'
import type { Hex } from 'viem'
import { errorCode } from '../../shared/errorCode.ts'
import { USDC_NETWORKS } from '../../shared/till/usdc.ts'
import { type DevnetClient, deployDevnetContracts, devnetClient } from './contracts.ts'
import { endOrphan, recordProcess } from './process.ts'

const { chainId: CHAIN_ID, usdcAddress: USDC_ADDRESS } = USDC_NETWORKS['base-sepolia']
const START_TIMEOUT_MS = 20_000
const STOP_TIMEOUT_MS = 5_000
const SAVE_INTERVAL_MS = 1_000
/**
 * Limits the dumps of the chain state to a twentieth of the time, because each dump takes longer as the chain grows.
 */
const SAVE_DUTY = 20

/** Describes the methods of a pino logger that the devnet uses. */
type DevnetLog = {
  info(fields: object, message: string): void
  warn(fields: object, message: string): void
}

export type StartDevnetParameters = {
  /** Holds the port on which the devnet listens. The port 0 means any unused port. */
  port: number
  /** Tells whether the devnet may use any other port if `port` is in use. */
  orAnyPort?: boolean
  /**
   * Holds the path of the file that contains the chain state of the devnet. The files `<stateFile>.pid` and
   * `<stateFile>.cache` are in the same folder as the state file.
   */
  stateFile: string
  /**
   * Sets how many seconds pass between two blocks of the devnet. If no block time is set, the devnet mines each
   * transaction at once.
   */
  blockTimeS?: number
  log: DevnetLog
}

export type Devnet = {
  rpcUrl: string
  port: number
  chainId: number
  /** Resolves with the reason if the devnet process ends although nobody has stopped it. */
  ended: Promise<string>
  /** Saves the state of the chain and ends the devnet process. Further calls of this function do nothing. */
  stop(): Promise<void>
}

/** Reports that another process uses the port on which the devnet should listen. */
export class PortTaken extends Error {
  constructor(port: number) {
    super(`port ${port} is taken by another program`)
  }
}

/**
 * Starts the devnet from its state file. If the devnet has no state file, the function deploys the contracts again. A
 * killed service may have left its devnet process running. The function then first saves the state of that process and
 * ends it.
 *
 * @throws {PortTaken} if another process uses the port.
 * @throws Error if anvil is not installed for this platform, another live process uses the state file, or the state
 * file cannot be loaded.
 *
 * @example
 * const devnet = await startDevnet({ port: 8545, stateFile: '.data/devnet.state', log })
 */
export async function startDevnet(parameters: StartDevnetParameters): Promise<Devnet> {
  const { port, blockTimeS, log } = parameters
  const stateFile = resolve(parameters.stateFile)
  const startedMs = performance.now()
  await mkdir(dirname(stateFile), { recursive: true })
  await endOrphan(stateFile, STOP_TIMEOUT_MS, async (orphanRpcUrl) => {
    log.warn({ stateFile }, 'devnet of a killed service found')
    await save(devnetClient(orphanRpcUrl), stateFile)
  })

  let child = spawnAnvil(port, stateFile)
  const endChild = () => child.kill('SIGKILL')
  process.once('exit', endChild)
  try {
    let bound = await listeningPort(child)
    if (bound === 'taken' && parameters.orAnyPort === true) {
      child = spawnAnvil(0, stateFile)
      bound = await listeningPort(child)
    }
    if (bound === 'taken') throw new PortTaken(port)
    const rpcUrl = `http://127.0.0.1:${bound}`
    await recordProcess(stateFile, { pid: child.pid ?? 0, rpcUrl })
    const client = devnetClient(rpcUrl)
    const restored = await restoreOrDeploy(client, stateFile)
    await catchUp(client)
    if (blockTimeS !== undefined) await client.setIntervalMining({ interval: blockTimeS })
    const ms = Math.round(performance.now() - startedMs)
    log.info({ rpcUrl, chainId: CHAIN_ID, restored, ms }, 'devnet started')
    const ended = new Promise<string>((resolveEnded) => {
      child.once('exit', (code, signal) =>
        resolveEnded(`anvil ended (${signal ?? `exit ${code}`})`),
      )
    })
    const stop = stopper({ child, endChild, client, stateFile, log })
    return { rpcUrl, port: bound, chainId: CHAIN_ID, ended, stop }
  } catch (error) {
    process.off('exit', endChild)
    await end(child)
    await rm(`${stateFile}.pid`, { force: true })
    throw error
  }
}

/**
 * Returns the path of the anvil executable for this platform. The launcher script of the anvil package is not used,
 * because it would put a Node process between this process and anvil.
 */
function anvilBinary(): string {
  const arch = process.arch === 'x64' ? 'amd64' : process.arch
  const platform = process.platform === 'win32' ? 'win32' : process.platform
  const name = `@foundry-rs/anvil-${platform}-${arch}`
  const file = process.platform === 'win32' ? 'anvil.exe' : 'anvil'
  try {
    // The package manager may nest the optional dependencies inside the package @foundry-rs/anvil, so the search starts
    // in the folder of that package.
    const launcher = createRequire(import.meta.url).resolve('@foundry-rs/anvil/package.json')
    return createRequire(launcher).resolve(`${name}/bin/${file}`)
  } catch (error) {
    throw new Error(`the devnet needs ${name}, which is not installed; set RPC_URL instead`, {
      cause: error,
    })
  }
}

function spawnAnvil(port: number, stateFile: string): ChildProcess {
  const options = [
    ['--host', '127.0.0.1'],
    ['--port', String(port)],
    ['--chain-id', String(CHAIN_ID)],
    // The cache path puts the name of the state file into the command line of the anvil process. By this name, a later
    // start finds out which state file the process serves.
    ['--cache-path', `${stateFile}.cache`],
    // anvil accepts requests of at most 2 MB by default, but after some thousand payments, the chain state of the
    // devnet is larger than this limit.
    ['--no-request-size-limit'],
  ].flat()
  // anvil gets an empty environment, because FOUNDRY_* and ANVIL_* variables would change the chain.
  return spawn(anvilBinary(), options, { env: {}, stdio: ['ignore', 'pipe', 'pipe'] })
}

/**
 * Reads the port of anvil from the text that anvil prints at its start. If port 0 was requested, only this text tells
 * which port anvil chose.
 */
function listeningPort(child: ChildProcess): Promise<number | 'taken'> {
  return new Promise((done, fail) => {
    let output = ''
    const timer = setTimeout(() => fail(new Error('the devnet did not start')), START_TIMEOUT_MS)
    const read = (chunk: Buffer) => {
      // After anvil has begun to listen, the module reads and discards the output of anvil, because a full pipe would
      // stop anvil.
      if (output.length > 64 * 1024) return
      output += chunk.toString('utf8')
      const match = /Listening on [\d.]+:(\d+)/.exec(output)
      if (match?.[1] === undefined) return
      clearTimeout(timer)
      done(Number(match[1]))
    }
    child.stdout?.on('data', read)
    child.stderr?.on('data', read)
    child.once('error', fail)
    child.once('close', (code) => {
      clearTimeout(timer)
      if (/address already in use/i.test(output)) return done('taken')
      fail(new Error(`the devnet did not start (exit ${code}): ${output.trim().slice(-500)}`))
    })
  })
}

/**
 * Restores the saved chain state of the devnet, or deploys the contracts if there is no saved state. @returns true if
 * there was a saved state.
 */
async function restoreOrDeploy(client: DevnetClient, stateFile: string): Promise<boolean> {
  await client.setLoggingEnabled(false)
  const state = await readState(stateFile)
  if (state === null) {
    await deployDevnetContracts(client)
    await save(client, stateFile)
    return false
  }
  try {
    await client.loadState({ state })
    const code = await client.getCode({ address: USDC_ADDRESS })
    if (code === undefined) throw new Error('the state holds no USDC contract')
    return true
  } catch (error) {
    throw new Error(`${stateFile} cannot be loaded; delete it to start an empty devnet`, {
      cause: error,
    })
  }
}

/**
 * Sets the clock of the devnet to the present second if the clock lags behind. Anvil's clock begins at the launch of
 * the process, so a slow start leaves the clock behind. With a slow clock, a payment that a stranger settles at once
 * would seem to be older than the stored payment.
 */
async function catchUp(client: DevnetClient): Promise<void> {
  const { timestamp } = await client.getBlock({ blockTag: 'pending' })
  const lagS = Math.floor(Date.now() / 1000) - Number(timestamp)
  if (lagS > 0) await client.increaseTime({ seconds: lagS })
}

async function readState(stateFile: string): Promise<Hex | null> {
  try {
    return (await readFile(stateFile, 'utf8')) as Hex
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return null
    throw error
  }
}

async function save(client: DevnetClient, stateFile: string): Promise<void> {
  const state = await client.dumpState()
  await writeFile(`${stateFile}.new`, state, { flush: true })
  await rename(`${stateFile}.new`, stateFile)
}

type Running = {
  child: ChildProcess
  endChild: () => void
  client: DevnetClient
  stateFile: string
  log: DevnetLog
}

/** Saves the chain state of the devnet repeatedly until the caller calls the returned function. */
function stopper({ child, endChild, client, stateFile, log }: Running): () => Promise<void> {
  let stopping: Promise<void> | undefined
  let timer: Timer | undefined
  let savedHash: Hex | undefined
  let saving = Promise.resolve()

  const saveIfNew = async () => {
    const startedMs = performance.now()
    try {
      const { hash } = await client.getBlock({ blockTag: 'latest' })
      if (hash !== savedHash) await save(client, stateFile)
      savedHash = hash
    } catch (error) {
      if (!hasEnded(child)) log.warn({ reason: oneLine(error) }, 'devnet state not saved')
    }
    const delayMs = Math.max(SAVE_INTERVAL_MS, (performance.now() - startedMs) * SAVE_DUTY)
    if (stopping === undefined && !hasEnded(child)) schedule(delayMs)
  }
  const schedule = (delayMs: number) => {
    timer = setTimeout(() => {
      saving = saveIfNew()
    }, delayMs)
    timer.unref()
  }
  schedule(SAVE_INTERVAL_MS)
  const stop = async () => {
    clearTimeout(timer)
    await saving
    // The chain state is also saved when the devnet stops without a new block, because balances and code can change
    // without a block.
    if (!hasEnded(child)) await save(client, stateFile)
    process.off('exit', endChild)
    await end(child)
    await rm(`${stateFile}.pid`, { force: true })
  }
  return () => {
    stopping ??= stop()
    return stopping
  }
}

/**
 * Returns the message of an error in one line, without its stack trace. A save often fails because the devnet ends at
 * this moment, before this process hears of the end.
 */
const oneLine = (error: unknown): string =>
  (error instanceof Error ? error.message : String(error)).replaceAll(/\s+/g, ' ')

function hasEnded(child: ChildProcess): boolean {
  return child.pid === undefined || child.exitCode !== null || child.signalCode !== null
}

async function end(child: ChildProcess): Promise<void> {
  if (hasEnded(child)) return
  const ended = new Promise<void>((done) => child.once('exit', () => done()))
  child.kill('SIGTERM')
  const timer = setTimeout(() => child.kill('SIGKILL'), STOP_TIMEOUT_MS)
  await ended
  clearTimeout(timer)
}
