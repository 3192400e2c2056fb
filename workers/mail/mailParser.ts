import { readFileSync } from 'node:fs'
import { availableParallelism, setPriority } from 'node:os'
import { join } from 'node:path'
import { type IndexedMail, indexed } from '../../shared/mail/indexedMail.ts'
import { parseMail } from '../../shared/mail/parseMail.ts'
import { FairTurns } from '../../shared/process/fairTurns.ts'
import type { ParseAnswer, ParseRequest } from './parserMain.ts'
import { createSingleFile } from './parseTurns.ts'

/** A message up to this size takes at most some 50 ms, also a hostile one. It is parsed in this process. */
const SMALL_BYTES = 64 * 1024
/** An honest message of the largest size takes a second. */
const TIME_MAX_MS = 10_000
const MEMORY_MAX_BYTES = 1536 * 1024 * 1024
const MEMORY_CHECK_MS = 250
/** An idle child ends after this time: it holds some 60 MB. */
const IDLE_MS = 30_000
const PAGE_BYTES = 4096
/** The scheduling priority of a child: small mail, payments and requests go first. */
const NICENESS = 10

/** Parses messages. Large ones take turns by inbox, each in a child process with limits of time and memory. */
export type MailParser = {
  /**
   * @param projectId the project of the inbox.
   * @param isolated parse also a small message in a child: it may have killed a process before.
   * @throws when the parser throws, dies, or passes a limit.
   */
  parse(raw: Buffer, projectId: string, isolated?: boolean): Promise<IndexedMail>
}

export function createMailParser(
  domain: string,
  limits = { timeMaxMs: TIME_MAX_MS, memoryMaxBytes: MEMORY_MAX_BYTES },
): MailParser {
  // One processor stays free for all other work.
  const count = Math.max(1, availableParallelism() - 1)
  const turns = new FairTurns({ total: count, perOwner: Math.max(1, count - 1) })
  const idle: Child[] = []
  const singleFile = createSingleFile()
  return {
    async parse(raw, projectId, isolated = false) {
      if (raw.length <= SMALL_BYTES && !isolated) {
        return await singleFile(async () => indexed(await parseMail(raw, domain), projectId))
      }
      const leave = await turns.enter(projectId)
      const child = idle.pop() ?? startChild(limits)
      try {
        const mail = await child.parse({ raw, domain, projectId })
        child.rest(() => idle.splice(idle.indexOf(child), 1))
        idle.push(child)
        return mail
      } finally {
        leave()
      }
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
