import { Counter, Gauge, Registry } from 'prom-client'
import { measureEventLoop } from '../../shared/process/eventLoop.ts'
import type { Spool } from './spool/spool.ts'

/** Holds the metrics of one SMTP listener. */
export type SmtpMetrics = {
  registry: Registry
  /** Counts a message that got a 250 reply. */
  accepted(): void
  /**
   * Counts a refused mail by its SMTP reply. The labels of this metric are reply texts of this service, so a client
   * cannot create new labels.
   */
  refused(reply: string): void
  /** Reads the present number of SMTP connections and the present number of spooled mails. */
  look(): void
}

export function createSmtpMetrics(spool: Spool, connections: () => number): SmtpMetrics {
  const registry = new Registry()
  measureEventLoop(registry)
  const registers = [registry]
  const accepted = new Counter({
    name: 'purser_smtp_messages_accepted_total',
    help: 'Messages answered 250',
    registers,
  })
  const refusals = new Counter({
    name: 'purser_smtp_refusals_total',
    help: 'Connections, senders, recipients and messages refused, by reply',
    labelNames: ['reply'],
    registers,
  })
  const open = new Gauge({
    name: 'purser_smtp_connections',
    help: 'Open SMTP connections',
    registers,
  })
  const spooled = new Gauge({
    name: 'purser_spool_mails',
    help: 'Accepted mails that are not yet in the database',
    registers,
  })
  const age = new Gauge({
    name: 'purser_spool_oldest_seconds',
    help: 'Age of the oldest mail in the spool; 0: it is empty',
    registers,
  })
  const hasRoom = new Gauge({
    name: 'purser_spool_has_room',
    help: 'Whether the disk of the spool has room: 1 or 0',
    registers,
  })
  return {
    registry,
    accepted: () => accepted.inc(),
    refused: (reply) => refusals.inc({ reply }),
    look() {
      open.set(connections())
      const { count, oldestAt } = spool.depth()
      spooled.set(count)
      age.set(oldestAt === null ? 0 : Math.max(0, Date.now() - oldestAt) / 1000)
      hasRoom.set(spool.hasRoom() ? 1 : 0)
    },
  }
}
