import { readFileSync } from 'node:fs'
import { availableParallelism, setPriority } from 'node:os'
import { join } from 'node:path'
import { type IndexedMail, indexed } from '../../shared/mail/indexedMail.ts'
import { parseMail } from '../../shared/mail/parseMail.ts'
import { Costs } from '../../shared/process/costs.ts'
import { CostTurns } from '../../shared/process/costTurns.ts'
import type { ParseAnswer, ParseRequest } from './parserMain.ts'
import { createSingleFile, LIGHT_BYTES } from './parseTurns.ts'

/** An honest message of the largest size takes a second. */
const TIME_MAX_MS = 10_000
const MEMORY_MAX_BYTES = 1536 * 1024 * 1024
const MEMORY_CHECK_MS = 250
/** An idle child ends after this time: it holds some 60 MB. */
const IDLE_MS = 30_000
const PAGE_BYTES = 4096
/** The scheduling priority of a child: small mail, payments and requests go first. */
const NICENESS = 10

/** A message to parse for an inbox. */
type Parsed = {
  projectId: string
  /** They are charged for the time. Absent: the inbox. */
  sharers?: readonly string[]
  /** Parse also a light message in a child: it may have killed a process before. */
  isolated?: boolean
}

/**
 * Parses messages, those of the lightest sharers first. A hostile message of 64 KB holds up a processor for 50 ms: only
 * light ones are parsed in this process. All others go to child processes with limits of time and memory.
 */
export type MailParser = {
  /** @throws when the parser throws, dies, or passes a limit. */
  parse(raw: Buffer, mail: Parsed): Promise<IndexedMail>
}

export function createMailParser(
  domain: string,
  costs = new Costs(),
  limits = { timeMaxMs: TIME_MAX_MS, memoryMaxBytes: MEMORY_MAX_BYTES },
): MailParser {
  // One processor stays free for all other work.
  const count = Math.max(1, availableParallelism() - 1)
  const turns = new CostTurns(costs, count)
  const idle: Child[] = []
  const singleFile = createSingleFile(costs)
  return {
    async parse(raw, { projectId, sharers = [projectId], isolated = false }) {
      if (raw.length <= LIGHT_BYTES && !isolated) {
        return await singleFile(sharers, async () =>
          indexed(await parseMail(raw, domain), projectId),
        )
      }
      return await turns.run(sharers, async () => {
        const child = idle.pop() ?? startChild(limits)
        const mail = await child.parse({ raw, domain, projectId })
        child.rest(() => idle.splice(idle.indexOf(child), 1))
        idle.push(child)
        return mail
      })
    },
  }
}

type Child = {
  parse(request: ParseRequest): Promise<IndexedMail>
  /** Ends the child, and calls `ended`, if it stays idle. */
  rest(ended: () => void): void
}

function startChild({
  timeMaxMs,
  memoryMaxBytes,
}: {
  timeMaxMs: number
  memoryMaxBytes: number
}): Child {
  let answered: (answer: ParseAnswer) => void = () => {}
  let resting: ReturnType<typeof setTimeout> | undefined
  const child = Bun.spawn([process.execPath, join(import.meta.dir, 'parserMain.ts')], {
    stdio: ['ignore', 'ignore', 'ignore'],
    env: {},
    serialization: 'advanced',
    ipc: (message: ParseAnswer) => answered(message),
    onExit: (_process, code, signal) =>
      answered({ error: `the parser ended with ${signal ?? code}` }),
  })
  child.unref()
  yieldTo(child.pid)
  const kill = (error: string) => {
    answered({ error })
    child.kill('SIGKILL')
  }
  return {
    async parse(request) {
      clearTimeout(resting)
      const { promise, resolve } = Promise.withResolvers<ParseAnswer>()
      answered = resolve
      const late = setTimeout(() => kill(`the parser took over ${timeMaxMs} ms`), timeMaxMs)
      const memory = setInterval(() => {
        if (residentBytes(child.pid) > memoryMaxBytes) kill('the parser took too much memory')
      }, MEMORY_CHECK_MS)
      try {
        child.send(request)
        const answer = await promise
        if ('error' in answer) throw new Error(answer.error)
        return answer
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
