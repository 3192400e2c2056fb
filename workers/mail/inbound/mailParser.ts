import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { Costs } from '../../../shared/fair/costs.ts'
import { CostTurns } from '../../../shared/fair/costTurns.ts'
import { parseMail } from '../../../shared/mail/parse/parseMail.ts'
import { type IndexedMail, indexed } from '../../../shared/mail/search/indexedMail.ts'
import { type ChildLimits, createChildren } from '../../process/child.ts'
import type { ParseRequest } from './parserMain.ts'
import { createSingleFile, LIGHT_BYTES } from './parseTurns.ts'

/**
 * Limits the time and memory for parsing one message. An honest message of the maximum size takes one second to parse.
 */
const LIMITS: ChildLimits = { timeMaxMs: 10_000, memoryMaxBytes: 1536 * 1024 * 1024 }

/** Describes a message to parse for an inbox. */
type Parsed = {
  projectId: string
  /**
   * Names the inbox and the sending network to which the parsing time of the message is charged. By default, this time
   * is charged only to the inbox.
   */
  sharers?: readonly string[]
  /**
   * Forces even a light message to be parsed in a child process, because an earlier parsing of this message may have
   * killed a process.
   */
  isolated?: boolean
}

/**
 * Parses messages. The messages of inboxes and networks that have recently caused the least load are parsed first. A
 * hostile message of 64 KB occupies a processor for 50 ms, so only light messages are parsed in this process. All
 * messages that are not light are parsed in child processes with limits on time and memory.
 */
export type MailParser = {
  /** Parses one message. @throws if the parser throws, dies, or exceeds its limit of time or memory. */
  parse(raw: Buffer, mail: Parsed): Promise<IndexedMail>
}

export function createMailParser(domain: string, costs = new Costs(), limits = LIMITS): MailParser {
  // One processor of the machine stays unused, so that other processes can run.
  const count = Math.max(1, availableParallelism() - 1)
  const turns = new CostTurns(costs, count)
  const children = createChildren<ParseRequest, IndexedMail>({
    file: join(import.meta.dir, 'parserMain.ts'),
    name: 'the parser',
    limits,
  })
  const singleFile = createSingleFile(costs)
  return {
    async parse(raw, { projectId, sharers = [projectId], isolated = false }) {
      if (raw.length <= LIGHT_BYTES && !isolated) {
        return await singleFile(sharers, async () =>
          indexed(await parseMail(raw, domain), projectId),
        )
      }
      return await turns.run(sharers, async () => {
        const { result } = await children.run({ raw, domain, projectId })
        return result
      })
    },
  }
}
