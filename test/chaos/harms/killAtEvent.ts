import pg from 'pg'
import { commandOf, signal } from '../processes.ts'
import type { Harm } from './harms.ts'

/**
 * Sets how many milliseconds the harness waits for the event that triggers the kill. Even under load, this event
 * happens within this time.
 */
const EVENT_LIMIT_MS = 5_000
/** Holds the SMTP reply with which the listener accepts the data of a message (see api/smtp/listener.ts). */
const ACCEPTED = 'OK: message accepted'
const SETTLED_CHANNEL = 'chaos_settled'

/**
 * Kills the SMTP listener directly after it has sent the reply 250, because a kill at a random time would hardly ever
 * hit this moment.
 */
export const killAtAcceptance: Harm = async ({ service, links }) => {
  // The harness looks up the process id of the listener before it kills the listener, because the lookup takes longer
  // than the listener needs to write the next mail to the spool.
  const [pid] = service.pidsOf('smtp')
  if (pid === undefined) throw new Error('found no smtp process')
  const happened = await within((done) => {
    links.smtp.onAnswer = (chunk) => {
      if (!chunk.includes(ACCEPTED)) return
      links.smtp.onAnswer = null
      done(signal(pid, 'SIGKILL'))
    }
  })
  links.smtp.onAnswer = null
  if (!happened) throw new Error('saw no message accepted')
  return 'killed smtp at the 250 for a message'
}

/** Kills the payment workers as soon as other database sessions see that a payment is `settled`. */
export const killAtSettlement: Harm = async ({ service, database }) => {
  const pids = service.pidsOf('workers').filter((pid) => commandOf(pid).includes('--pool payments'))
  if (pids.length === 0) throw new Error('found no payment workers')
  const client = new pg.Client({ connectionString: database.directUrl() })
  client.on('error', () => {})
  try {
    await client.connect()
    await client.query(TELL_OF_SETTLEMENTS)
    await client.query(`listen ${SETTLED_CHANNEL}`)
    const happened = await within((done) => {
      client.once('notification', () =>
        done(pids.map((pid) => signal(pid, 'SIGKILL')).some(Boolean)),
      )
    })
    if (!happened) throw new Error('saw no payment settled')
    return 'killed the payment workers at a settlement'
  } finally {
    await client.end().catch(() => {})
  }
}

/** Creates a database trigger that sends a notification at the commit of each settlement. */
const TELL_OF_SETTLEMENTS = `
  create or replace function ${SETTLED_CHANNEL}() returns trigger language plpgsql as
    $$ begin perform pg_notify('${SETTLED_CHANNEL}', new.id); return null; end $$;
  create or replace trigger ${SETTLED_CHANNEL} after update on payments for each row
    when (new.state = 'settled' and old.state <> 'settled') execute function ${SETTLED_CHANNEL}();`

/**
 * @returns false if the event that triggers the kill did not happen within the time limit, so that `done` was not
 *   called
 */
async function within(start: (done: (happened: boolean) => void) => void): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>()
  const timer = setTimeout(() => resolve(false), EVENT_LIMIT_MS)
  start(resolve)
  return promise.finally(() => clearTimeout(timer))
}
