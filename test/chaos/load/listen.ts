import { Purser } from '../../../api/client/purser.ts'
import type { Listener } from '../audit/ledger.ts'
import type { Load, Project } from './load.ts'

/**
 * Runs a client that follows a project's events with the client library, from the first event until all clients must
 * give up.
 */
export async function listen(load: Load, { inbox, key }: Project): Promise<void> {
  const listener: Listener = { inbox, heard: [] }
  load.ledger.listeners.push(listener)
  const purser = new Purser({ apiKey: key, baseUrl: load.apiUrl })
  try {
    for await (const event of purser.events({ lastEventId: '0' }, { signal: load.givenUp })) {
      const { id, type, data } = event
      listener.heard.push({ id, type, subjectId: data.paymentId ?? data.messageId ?? null })
      load.tally.count('event', 'accepted')
      load.pulses.beat('events')
      if (type === 'message.received') load.pulses.beat('mail in')
    }
  } catch (error) {
    if (load.givenUp.aborted) return
    load.ledger.surprises.push(`the events of ${inbox} ended: ${(error as Error).message}`)
  }
}
