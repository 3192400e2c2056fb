import { randomUUID } from 'node:crypto'
import type { Logger } from 'pino'
import type { Running } from '../../shared/process/service.ts'
import type { Pool } from '../../sql/db.ts'
import { forgetListener, reportListener } from '../../sql/operations/smtpListeners.ts'
import type { Spool } from './spool/spool.ts'

const REPORT_MS = 3_000

/**
 * Reports to PostgreSQL that the SMTP listener runs and whether the disk of the listener has room, first at once and
 * then every 3 s. The route `/readyz` reads the reports of the listeners.
 */
export function startReporter({
  pool,
  spool,
  log,
}: {
  pool: Pool
  spool: Spool
  log: Logger
}): Running & { first: Promise<void> } {
  const id = randomUUID()
  let current = Promise.resolve()
  const report = async () => {
    const trouble = spool.hasRoom() ? null : 'the disk of the spool is full'
    await reportListener(pool, { id, trouble }).catch((error) =>
      log.warn({ err: error }, 'the listener could not be reported'),
    )
  }
  const timer = setInterval(() => {
    current = current.then(report)
  }, REPORT_MS)
  const first = report()
  current = first
  return {
    first,
    async stop() {
      clearInterval(timer)
      await current
      await forgetListener(pool, id).catch(() => {})
    },
  }
}
