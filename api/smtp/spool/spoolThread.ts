import { Database } from 'bun:sqlite'
import type { SpoolAnswer, SpooledColumns, SpoolWork } from './spoolWriter.ts'

/**
 * Writes mails to the spool on behalf of `SpoolWriter`. It runs in a separate thread, so that an fsync delays no SMTP
 * dialogue. The thread opens the spool's file when the first write request names it.
 */
declare const self: { onmessage: (event: { data: SpoolWork }) => void }

/**
 * Holds the only database connection that writes to the spool's file, because writes over a second connection would
 * empty the page cache of the first.
 */
let mails: Database | undefined

function open(file: string): Database {
  const opened = new Database(file, { strict: true })
  opened.run('pragma busy_timeout = 5000')
  opened.run('pragma synchronous = full')
  return opened
}

function work(given: SpoolWork): void {
  if ('close' in given) {
    mails?.close()
    mails = undefined
    return
  }
  mails ??= open(given.file)
  if ('accept' in given) accept(mails, given.accept)
  else remove(mails, given.remove)
}

function accept(db: Database, added: SpooledColumns[]): void {
  const insert = db.query(
    `insert into mails (source_key, bytes, envelope_from, inboxes, remote_ip, helo, received_at, traceparent, provider)
     values (?, ?, ?, ?, ?, ?, ?, ?, ?) on conflict (source_key) do nothing`,
  )
  db.transaction(() => {
    for (const mail of added) insert.run(...mail)
  })()
}

/**
 * Deletes mails from the spool without an fsync, after PostgreSQL has stored them. A power cut may undo the deletion.
 * The mover then moves the mail to PostgreSQL again, which changes nothing.
 */
function remove(db: Database, sourceKeys: string[]): void {
  db.run('pragma synchronous = normal')
  try {
    db.query('delete from mails where source_key in (select value from json_each($keys))').run({
      keys: JSON.stringify(sourceKeys),
    })
  } finally {
    db.run('pragma synchronous = full')
  }
}

self.onmessage = ({ data }) => {
  let answer: SpoolAnswer = null
  try {
    work(data)
  } catch (error) {
    answer = (error as Error).message
  }
  postMessage(answer)
}
