import { randomUUID } from 'node:crypto'
import type { Logger } from 'pino'
import { repeat } from '../../shared/process/pause.ts'
import type { Running } from '../../shared/process/service.ts'
import type { Pool } from '../../sql/db.ts'
import { forgetListener, reportListener } from '../../sql/operations/smtpListeners.ts'
import type { Spool } from './spool/spool.ts'

const REPORT_MS = 3_000

/**
 * Reports to PostgreSQL that the SMTP listener runs and whether its disk has room, first at once and then every 3 s.
 * The route `/readyz` reads these reports.
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
  const report = async () => {
    const trouble = spool.hasRoom() ? null : 'the disk of the spool is full'
    await reportListener(pool, { id, trouble }).catch((error) =>
      log.warn({ err: error }, 'the listener could not be reported'),
    )
  }
  const { first, stop } = repeat(report, REPORT_MS)
  return {
    first,
    async stop() {
      await stop()
      await forgetListener(pool, id).catch(() => {})
    },
  }
}
