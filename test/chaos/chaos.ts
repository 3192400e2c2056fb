import { audit } from './audit/auditor.ts'
import { gather, hurry } from './audit/gather.ts'
import { type Ledger, newLedger } from './audit/ledger.ts'
import { repeatsLine } from './audit/mailRepeats.ts'
import { newTally, type Tally } from './audit/tally.ts'
import { createCaller } from './caller.ts'
import { newEnding } from './ending.ts'
import { type Harming, startHarm } from './harms/harm.ts'
import type { Harms } from './harms/harms.ts'
import { buy } from './load/buy.ts'
import { correspond } from './load/correspond.ts'
import { keep } from './load/keep.ts'
import { listen } from './load/listen.ts'
import type { Load } from './load/load.ts'
import { write } from './load/mailIn.ts'
import { send } from './load/mailOut.ts'
import { pay } from './load/pay.ts'
import { type Database, startPostgres } from './postgres.ts'
import { type Pulse, type Silence, startPulses } from './pulse.ts'
import { createRandom, type Random } from './random.ts'
import { type Setting, startSetting } from './setting.ts'

export type ChaosOptions = {
  seed: number
  seconds: number
  harms: Harms
  /** Starts the database of the chaos run. By default, the harness starts its own database. */
  startDatabase?: (dataDir: string) => Promise<Database>
  /**
   * Is called with a line of text for each injected fault, and for each stage of the chaos run.
   */
  onLine?: (line: string) => void
  /** Is called every second with the counts of client operations. */
  onProgress?: (line: string) => void
  logFile?: string
  /** Ends the load of the chaos run early when it is aborted. */
  signal?: AbortSignal
}

export type ChaosReport = {
  seed: number
  seconds: number
  harms: Map<string, number>
  tally: Tally
  longestSilence: Record<Pulse, Silence>
  /** Holds the report line about repeated outbound mails. */
  repeats: string
  /** Lists the contradictions that the audit found. The chaos run has passed if this list is empty. */
  findings: string[]
}

/**
 * Sets how many milliseconds after the last injected fault clients must have ended their operations, and the queues
 * must be empty.
 */
const CALM_LIMIT_MS = 60_000
const CALM_LOOK_MS = 500
const PROGRESS_MS = 1_000

/** Lists the kinds of test clients, and the number of clients of each kind. */
const CLIENTS = [
  [2, write, 'mail'],
  [4, correspond, 'talk'],
  [2, send, 'send'],
  [4, pay, 'pay'],
  [2, buy, 'buy'],
  [2, keep, 'keep'],
] as const satisfies readonly (readonly [
  number,
  (load: Load, random: Random, name: string) => Promise<void>,
  string,
])[]

/** Runs the service under load and injected faults, waits until all work is done, and then audits the service. */
export async function runChaos(options: ChaosOptions): Promise<ChaosReport> {
  const ending = newEnding()
  let report: ChaosReport | undefined
  try {
    report = await run(
      await startSetting(ending, options.startDatabase ?? startPostgres, options.logFile),
      options,
    )
    return report
  } finally {
    const troubles = await ending.run()
    report?.findings.push(...troubles)
  }
}

async function run(setting: Setting, options: ChaosOptions): Promise<ChaosReport> {
  const { seed, seconds, harms, onLine = () => {}, onProgress = () => {} } = options
  onLine('the service is ready')
  const ending = new AbortController()
  const givenUp = new AbortController()
  const load = startLoad(setting, { ending: ending.signal, givenUp: givenUp.signal })
  const { ledger, tally, pulses } = load
  const beganMs = performance.now()
  const at = () => `${((performance.now() - beganMs) / 1000).toFixed(1)} s`
  setting.shop.onTaken = () => pulses.beat('webhooks')
  setting.sink.refuseData = () => {
    pulses.beat('mail out')
    return null
  }
  const clients = Promise.all(
    CLIENTS.flatMap(([count, client, name]) =>
      Array.from({ length: count }, (_, n) =>
        client(load, createRandom(seed, `${name} ${n}`), `${name}${n}`),
      ),
    ),
  )
  const listeners = Promise.all([listen(load, load.seller), listen(load, load.peer)])
  const harming = startHarm(setting, {
    seed,
    harms,
    ending: ending.signal,
    onHarm: (line) => onLine(`${at()}: ${line}`),
  })
  const progress = setInterval(
    () => onProgress(`${at()}: ${progressOf(ledger, tally, harming)}`),
    PROGRESS_MS,
  )
  const ended = timer(seconds * 1_000, options.signal)
  await Promise.race([ended, clients, listeners])
  ending.abort()
  pulses.end()
  await harming.ended
  onLine(`${at()}: all harm is over`)
  // Ctrl-C also ends the devnet (the test chain). Without the devnet no evidence can be gathered, so the audit is left
  // out.
  const repeats = { line: 'mails out: not audited' }
  const findings = options.signal?.aborted
    ? ['the run was interrupted: there was no audit']
    : await calm(setting, { ledger, clients, onLine, repeats })
  givenUp.abort()
  await Promise.all([clients, listeners])
  clearInterval(progress)
  onLine(`${at()}: the service is calm`)
  for (const code of setting.service.ownEnds) findings.push(`service: it ended by itself (${code})`)
  const code = await setting.service.stop()
  if (code !== 0) findings.push(`service: it was told to stop and ended with ${code}`)
  for (const command of await setting.service.remaining()) {
    findings.push(`service: it has stopped and left a process: ${command}`)
  }
  return {
    seed,
    seconds,
    harms: harming.counts,
    repeats: repeats.line,
    tally,
    longestSilence: pulses.longest(),
    findings,
  }
}

function startLoad(setting: Setting, signals: Pick<Load, 'ending' | 'givenUp'>): Load {
  const tally = newTally()
  const pulses = startPulses()
  const { apiUrl, resource, paidResource, links } = setting
  const project = ({ inbox, key }: Setting['seller']) => ({
    inbox,
    key,
    call: createCaller({ url: apiUrl, key }, { tally, pulses }),
  })
  return {
    ledger: newLedger(),
    tally,
    pulses,
    seller: project(setting.seller),
    peer: project(setting.peer),
    resource,
    paidResource,
    apiUrl,
    smtpPort: links.smtp.port,
    beganAt: new Date(Date.now() - 1_000).toISOString(),
    ...signals,
  }
}

/**
 * Waits until every client knows how its last operation ended and the audit finds nothing. Waits at most one minute.
 * @returns the findings of the last audit, or an empty list.
 */
async function calm(
  setting: Setting,
  options: {
    ledger: Ledger
    clients: Promise<unknown>
    onLine: (line: string) => void
    repeats: { line: string }
  },
): Promise<string[]> {
  const { ledger, clients, onLine, repeats } = options
  const deadlineMs = performance.now() + CALM_LIMIT_MS
  let decided = false
  void clients.then(() => {
    decided = true
  })
  for (let before = ''; ; ) {
    const late = performance.now() > deadlineMs
    // Before the deadline, the audit begins only when all clients have their responses. Otherwise the evidence would be
    // older than some responses in the ledger (the recorded responses to clients).
    const findings = decided || late ? await look(setting, ledger, repeats) : []
    if (!decided) findings.push('clients: some operation has no end')
    const open = `${findings.length} open findings, first: ${findings[0]}`
    if (findings.length > 0 && open !== before) onLine(open)
    before = open
    if (findings.length === 0 || late) return findings
    await Bun.sleep(CALM_LOOK_MS)
  }
}

async function look(
  setting: Setting,
  ledger: Ledger,
  repeats: { line: string },
): Promise<string[]> {
  try {
    await hurry(setting)
    const evidence = await gather(setting, ledger)
    repeats.line = repeatsLine(evidence)
    return audit(ledger, evidence)
  } catch (error) {
    return [`the evidence could not be gathered: ${(error as Error).message}`]
  }
}

const progressOf = ({ mailsIn, mailsOut, payments }: Ledger, tally: Tally, harming: Harming) =>
  `${mailsIn.length} mails in, ${mailsOut.length} out, ${payments.length} payments, ` +
  `${tally.sum('accepted')} accepted, ${tally.sum('lost')} lost, ` +
  `${[...harming.counts.values()].reduce((sum, count) => sum + count, 0)} harms`

/** Resolves after the given number of milliseconds, or when the signal is aborted. */
function timer(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(timeout)
      resolve()
    }
    const timeout = setTimeout(done, ms)
    signal?.addEventListener('abort', done)
  })
}
