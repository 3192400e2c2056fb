import { readFileSync } from 'node:fs'
import { setPriority } from 'node:os'

const CHECK_MS = 250
/**
 * Sets the milliseconds after which an idle child process ends, because it takes some 60 MB of memory.
 */
const IDLE_MS = 30_000
/**
 * Sets the bytes of memory above which a child process ends at once when it becomes idle, because its runtime does not
 * return memory to the system.
 */
const IDLE_MAX_BYTES = 256 * 1024 * 1024
const PAGE_BYTES = 4096
/**
 * Holds the milliseconds of one clock tick, the unit of time in proc_pid_stat(5). Linux reports 100 clock ticks a
 * second to every program.
 */
const TICK_MS = 10
/**
 * Limits the elapsed time of one request to a child process. On a busy machine a child process must wait for a
 * processor, so an honest request takes several times its processor time.
 */
const WAIT_MAX_MS = 300_000
/**
 * Sets the scheduling priority (niceness) of a child process, so that the database, payments and API requests are
 * served first. With the value 5, a child process gets a third of the time of a normal process. With the value 10 it
 * got a tenth of this time, and on a busy machine mail waited for minutes.
 */
const NICENESS = 5

/**
 * Describes how a child process answers a request: with the result, or with the reason why the request has no result.
 * The field `cpuMs` is the processor time that the request took.
 */
type ChildAnswer<Result> = { cpuMs: number } & ({ result: Result } | { error: string })

/** Tells why a child process has given no answer. */
type Fault = { fault: string; isAccident: boolean }

/** Reports that a child process did not start, threw an error, died, or exceeded its limit of time or memory. */
export class ChildError extends Error {
  override readonly name = 'ChildError'
  /**
   * Holds the processor time that the request to the child process took, in milliseconds. For a killed child process,
   * `cpuMs` is the processor time until the kill.
   */
  readonly cpuMs: number
  /**
   * Tells whether the child process failed to start, or died before it answered and before it reached a limit. The same
   * request may succeed later, for example when the machine has memory again.
   */
  readonly isAccident: boolean
  /** Tells whether the operating system could not start the child process, so that no request reached a process. */
  readonly isUnstarted: boolean
  constructor(message: string, cpuMs: number, { isAccident = false, isUnstarted = false } = {}) {
    super(message)
    this.cpuMs = cpuMs
    this.isAccident = isAccident
    this.isUnstarted = isUnstarted
  }
}

/**
 * Runs child processes of one program. Each child process handles one request at a time. A child process that exceeds
 * its limit of time or memory is killed.
 */
export type Children<Request, Result> = {
  /** Sends one request to a child process. @throws {ChildError} if the child process cannot handle the request. */
  run(request: Request): Promise<{ result: Result; cpuMs: number }>
}

/**
 * Describes a program for child processes by its file, its name and its limits. The program must call `serveParent`.
 * Error messages refer to the program as `name`, for example `the parser`.
 */
export type ChildProgram = { file: string; name: string; limits: ChildLimits }

/** Sets the limits of a child process. The value `timeMaxMs` limits the processor time of one request. */
export type ChildLimits = { timeMaxMs: number; memoryMaxBytes: number }

/**
 * Creates a set of child processes for one program. The caller must limit how many of these child processes run at
 * once.
 */
export function createChildren<Request, Result>(program: ChildProgram): Children<Request, Result> {
  let idle: Child<Request, Result>[] = []
  const leave = (child: Child<Request, Result>) => {
    idle = idle.filter((other) => other !== child)
  }
  return {
    async run(request) {
      const startedMs = performance.now()
      let child: Child<Request, Result> | undefined
      try {
        child = idle.pop() ?? startChild<Request, Result>(program, leave)
        const answer = await child.ask(request)
        if (child.rest()) idle.push(child)
        return answer
      } catch (error) {
        if (error instanceof ChildError) throw error
        // The operating system could not start the child process, or the request did not reach the child process.
        const spentMs = performance.now() - startedMs
        const isUnstarted = child === undefined
        throw new ChildError(`${program.name}: ${error}`, spentMs, {
          isAccident: true,
          isUnstarted,
        })
      }
    },
  }
}

type Child<Request, Result> = {
  /**
   * Sends a request to the child process. @throws if the child process cannot handle the request. The child process has
   * ended when the error is thrown.
   */
  ask(request: Request): Promise<{ result: Result; cpuMs: number }>
  /**
   * Lets the child process wait idle for a while, and then ends it. @returns false if the child process ends at once,
   * because it holds much memory.
   */
  rest(): boolean
}

/** Starts a child process. @param onEnd is called after the child process has ended. */
function startChild<Request, Result>(
  { file, name, limits: { timeMaxMs, memoryMaxBytes } }: ChildProgram,
  onEnd: (child: Child<Request, Result>) => void,
): Child<Request, Result> {
  let answered: (answer: ChildAnswer<Result> | Fault) => void = () => {}
  let resting: ReturnType<typeof setTimeout> | undefined
  const child = Bun.spawn([process.execPath, file], {
    stdio: ['ignore', 'ignore', 'ignore'],
    // The child process reads bytes from strangers, so it gets no environment variables, which contain secrets.
    env: {},
    serialization: 'advanced',
    ipc: (message: ChildAnswer<Result>) => answered(message),
    onExit(_process, code, signal) {
      onEnd(self)
      answered({ fault: `ended with ${signal ?? code}`, isAccident: true })
    },
  })
  child.unref()
  yieldTo(child.pid)
  const self: Child<Request, Result> = {
    async ask(request) {
      clearTimeout(resting)
      const { promise, resolve } = Promise.withResolvers<ChildAnswer<Result> | Fault>()
      answered = resolve
      const stop = (fault: string) => resolve({ fault, isAccident: false })
      const startedMs = performance.now()
      const before = processorMs(child.pid) ?? 0
      const check = setInterval(() => {
        const waitedMs = performance.now() - startedMs
        // If the operating system has no /proc, the elapsed time of a request is limited instead of its processor time.
        const usedMs = (processorMs(child.pid) ?? waitedMs) - before
        if (usedMs > timeMaxMs) stop(`took over ${timeMaxMs} ms`)
        if (waitedMs > WAIT_MAX_MS) stop(`was not done after ${waitedMs} ms`)
        if (residentBytes(child.pid) > memoryMaxBytes) stop('took too much memory')
      }, CHECK_MS)
      try {
        child.send(request)
        const answer = await promise
        if ('fault' in answer) {
          const waitedMs = performance.now() - startedMs
          const spentMs = (processorMs(child.pid) ?? before + waitedMs) - before
          throw new ChildError(`${name} ${answer.fault}`, spentMs, answer)
        }
        if ('error' in answer) throw new ChildError(answer.error, answer.cpuMs)
        return answer
      } catch (error) {
        child.kill('SIGKILL')
        throw error
      } finally {
        clearInterval(check)
      }
    },
    rest() {
      const isHeavy = residentBytes(child.pid) > IDLE_MAX_BYTES
      resting = setTimeout(
        () => {
          onEnd(self)
          child.kill('SIGKILL')
        },
        isHeavy ? 0 : IDLE_MS,
      )
      resting.unref()
      return !isHeavy
    },
  }
  return self
}

/**
 * Answers the requests of the parent process one after the other. Ends when the parent ends, even in the middle of a
 * request. Ignores SIGTERM and SIGINT, because systemd and a terminal send them to all processes of a service at once,
 * while the parent may still wait for an answer.
 */
export function serveParent<Request, Result>(work: (request: Request) => Promise<Result>): void {
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => {})
  new Worker(new URL('./orphanGuard.ts', import.meta.url)).unref()
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
    // If the child process has already ended, its scheduling priority cannot be set, and the error does not matter.
  }
}

/**
 * Returns the processor time of a process in milliseconds (proc_pid_stat(5)). Returns `undefined` if the operating
 * system has no /proc, or if /proc does not contain the process.
 */
export function processorMs(pid: number): number | undefined {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8')
    // In /proc/PID/stat the name of the program is in parentheses and may contain blanks, so the code reads only the
    // fields behind the last parenthesis.
    const fields = text.slice(text.lastIndexOf(')') + 2).split(' ')
    return (Number(fields[11]) + Number(fields[12])) * TICK_MS
  } catch {
    return undefined
  }
}

/**
 * Returns the resident memory of a process in bytes (proc_pid_statm(5)). Returns 0 if the operating system has no
 * /proc, such as macOS.
 */
function residentBytes(pid: number): number {
  try {
    return Number(readFileSync(`/proc/${pid}/statm`, 'utf8').split(' ')[1]) * PAGE_BYTES
  } catch {
    return 0
  }
}
