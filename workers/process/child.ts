import { readFileSync } from 'node:fs'
import { setPriority } from 'node:os'

const MEMORY_CHECK_MS = 250
/** An idle child ends after this time: it holds some 60 MB. */
const IDLE_MS = 30_000
const PAGE_BYTES = 4096
/** The scheduling priority of a child: the database, payments and requests go first. */
const NICENESS = 10

/** How a child answers a request: its result, or why there is none. `cpuMs` is the processor time that it took. */
type ChildAnswer<Result> = { cpuMs: number } & ({ result: Result } | { error: string })

/** A child threw, died, or passed a limit. */
export class ChildError extends Error {
  override readonly name = 'ChildError'
  /** The processor time that the request took, milliseconds; of a killed child, the time until then. */
  readonly cpuMs: number
  constructor(message: string, cpuMs: number) {
    super(message)
    this.cpuMs = cpuMs
  }
}

/** Child processes of one program. Each does one request at a time, and is killed when one takes too much. */
export type Children<Request, Result> = {
  /** @throws {ChildError} */
  run(request: Request): Promise<{ result: Result; cpuMs: number }>
}

export type ChildLimits = { timeMaxMs: number; memoryMaxBytes: number }

/** @param program the path of a file that calls `serveParent`. The caller bounds how many run at once. */
export function createChildren<Request, Result>(
  program: string,
  limits: ChildLimits,
): Children<Request, Result> {
  const idle: Child<Request, Result>[] = []
  return {
    async run(request) {
      const child = idle.pop() ?? startChild(program, limits)
      const answer = await child.ask(request)
      child.rest(() => idle.splice(idle.indexOf(child), 1))
      idle.push(child)
      if ('error' in answer) throw new ChildError(answer.error, answer.cpuMs)
      return answer
    },
  }
}

type Child<Request, Result> = {
  /** @throws {ChildError} when the child has ended. */
  ask(request: Request): Promise<ChildAnswer<Result>>
  /** Ends the child, and calls `ended`, if it stays idle. */
  rest(ended: () => void): void
}

function startChild<Request, Result>(
  program: string,
  { timeMaxMs, memoryMaxBytes }: ChildLimits,
): Child<Request, Result> {
  let answered: (answer: ChildAnswer<Result> | string) => void = () => {}
  let resting: ReturnType<typeof setTimeout> | undefined
  const child = Bun.spawn([process.execPath, program], {
    stdio: ['ignore', 'ignore', 'ignore'],
    // Settings hold secrets: the child reads a stranger's bytes.
    env: {},
    serialization: 'advanced',
    ipc: (message: ChildAnswer<Result>) => answered(message),
    onExit: (_process, code, signal) => answered(`it ended with ${signal ?? code}`),
  })
  child.unref()
  yieldTo(child.pid)
  return {
    async ask(request) {
      clearTimeout(resting)
      const { promise, resolve } = Promise.withResolvers<ChildAnswer<Result> | string>()
      answered = resolve
      const startedMs = performance.now()
      const late = setTimeout(() => resolve(`it took over ${timeMaxMs} ms`), timeMaxMs)
      const memory = setInterval(() => {
        if (residentBytes(child.pid) > memoryMaxBytes) resolve('it took too much memory')
      }, MEMORY_CHECK_MS)
      try {
        child.send(request)
        const answer = await promise
        if (typeof answer !== 'string') return answer
        throw new ChildError(answer, performance.now() - startedMs)
      } catch (error) {
        child.kill('SIGKILL')
        throw error
      } finally {
        clearTimeout(late)
        clearInterval(memory)
      }
    },
    rest(ended) {
      resting = setTimeout(() => {
        ended()
        child.kill()
      }, IDLE_MS)
      resting.unref()
    },
  }
}

/** Answers the requests of the parent, one after the other, and ends with it. */
export function serveParent<Request, Result>(work: (request: Request) => Promise<Result>): void {
  process.on('message', async (request: Request) => {
    const before = process.cpuUsage()
    const outcome = await work(request).then(
      (result) => ({ result }),
      (error) => ({ error: String(error) }),
    )
    const { user, system } = process.cpuUsage(before)
    process.send?.({ ...outcome, cpuMs: (user + system) / 1000 } satisfies ChildAnswer<Result>)
  })
  process.on('disconnect', () => process.exit(0))
}

function yieldTo(pid: number): void {
  try {
    setPriority(pid, NICENESS)
  } catch {
    // It has ended already.
  }
}

/** Resident memory of a process, in bytes (proc_pid_statm(5)); 0 where /proc is absent, e.g. on macOS. */
function residentBytes(pid: number): number {
  try {
    return Number(readFileSync(`/proc/${pid}/statm`, 'utf8').split(' ')[1]) * PAGE_BYTES
  } catch {
    return 0
  }
}
