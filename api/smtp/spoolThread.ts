import { Database } from 'bun:sqlite'
import type { SpoolAnswer, SpoolWork } from './spoolWriter.ts'

/**
 * Writes the spool for `SpoolWriter`, in a thread of its own: an fsync stops no SMTP dialogue. It opens the file of the
 * first work.
 */
declare const self: { onmessage: (event: { data: SpoolWork }) => void }

type Connections = { mails: Database; deletions: Database }

let connections: Connections | undefined

function open(file: string): Connections {
  const mails = new Database(file, { strict: true })
  mails.run('pragma busy_timeout = 5000')
  mails.run('pragma synchronous = full')
  // Without an fsync: a mail whose deletion a power cut undoes is moved again, which changes nothing.
  const deletions = new Database(file, { strict: true })
  deletions.run('pragma busy_timeout = 5000')
  deletions.run('pragma synchronous = normal')
  return { mails, deletions }
}

function work(given: SpoolWork): void {
  if ('close' in given) {
    connections?.deletions.close()
    connections?.mails.close()
    connections = undefined
    return
  }
  connections ??= open(given.file)
  const { mails, deletions } = connections
  if ('remove' in given) {
    deletions
      .query('delete from mails where source_key in (select value from json_each($keys))')
      .run({ keys: JSON.stringify(given.remove) })
    return
  }
  const insert = mails.query(
    `insert into mails (source_key, bytes, envelope_from, inboxes, remote_ip, helo, received_at, traceparent)
     values (?, ?, ?, ?, ?, ?, ?, ?)`,
  )
  mails.transaction(() => {
    for (const mail of given.accept) insert.run(...mail)
  })()
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
