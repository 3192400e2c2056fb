import type { Queryable } from '../db.ts'

/** Sets the time after which an SMTP listener without a report counts as stopped. */
const REPORT_MAX_AGE_MS = 15_000

/**
 * Stores the report of a running SMTP listener. The field `trouble` tells why the SMTP listener accepts no mail. A null
 * `trouble` means that the SMTP listener accepts mail.
 */
export async function reportListener(
  db: Queryable,
  { id, trouble }: { id: string; trouble: string | null },
): Promise<void> {
  await db.query({
    name: 'report-listener',
    text: `insert into smtp_listeners (id, trouble) values ($1, $2)
           on conflict (id) do update set trouble = excluded.trouble, reported_at = clock_timestamp()`,
    values: [id, trouble],
  })
}

/** Deletes the report of an SMTP listener that stops. */
export async function forgetListener(db: Queryable, id: string): Promise<void> {
  await db.query('delete from smtp_listeners where id = $1', [id])
}

/** Deletes the reports of SMTP listeners that have sent no report for a day. */
export async function forgetStaleListeners(db: Queryable): Promise<void> {
  await db.query(
    `delete from smtp_listeners where reported_at < clock_timestamp() - interval '1 day'`,
  )
}

/** Describes all SMTP listeners together. */
type ListenersState = {
  /**
   * Holds `unused` if no SMTP listener has ever sent a report, and `away` if none has sent one lately. Otherwise the
   * field `check` holds the first trouble of a listener, or `ok`.
   */
  check: string
  /** Tells whether at least one living SMTP listener has no trouble. */
  takesMail: boolean
}

/** Reads the state of the SMTP listeners. */
export async function readListeners(db: Queryable): Promise<ListenersState> {
  const { rows } = await db.query<{ trouble: string | null; lives: boolean }>({
    name: 'read-listeners',
    text: `select trouble, reported_at > clock_timestamp() - make_interval(secs => $1) as lives
           from smtp_listeners order by trouble nulls last`,
    values: [REPORT_MAX_AGE_MS / 1000],
  })
  const living = rows.filter(({ lives }) => lives)
  const takesMail = living.some(({ trouble }) => trouble === null)
  if (rows.length === 0) return { check: 'unused', takesMail }
  if (living.length === 0) return { check: 'away', takesMail }
  return { check: living[0]!.trouble ?? 'ok', takesMail }
}
