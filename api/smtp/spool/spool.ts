import { Database } from 'bun:sqlite'
import { chmodSync, mkdirSync, statfsSync } from 'node:fs'
import { join } from 'node:path'
import { type Batcher, createBatcher } from '../../../shared/process/batcher.ts'
import { BLOB_BYTES } from '../../../sql/blobs/blobs.ts'
import type { SpooledMail } from '../../../sql/mail/inbound/inboundMails.ts'
import { SpoolAddresses } from './spoolAddresses.ts'
import { type SpooledColumns, SpoolWriter } from './spoolWriter.ts'

/**
 * Describes a complete message with its envelope before the spool has stored it. The file docs/decisions/spool.md tells
 * why the spool of accepted mail is an SQLite file.
 */
export type NewSpooledMail = Omit<SpooledMail, 'sourceKey'> & {
  /**
   * Holds the source key, which identifies the mail in the spool. If it is absent, the mail gets a new key. Of several
   * mails with the same key, the service stores only the first.
   */
  sourceKey?: string
}

/** Reports that the disk of the spool has no room for another message. */
export class SpoolFull extends Error {}

/**
 * Reserves disk space for deletions from the spool, because SQLite writes them to its write-ahead log. Without this
 * reserve, the service could never empty a spool on a full disk.
 */
const RESERVE_BYTES = 16 * 1024 * 1024

/**
 * Sets after how many milliseconds the spool measures the free space of the disk again. In between, it subtracts the
 * size of each accepted mail from the last measured space.
 */
const ROOM_MS = 100

const FILE = 'spool.sqlite'

/**
 * Sets how many accepted mails the spool writes at most with one fsync. Only one fsync runs at a time, so mails that
 * arrive meanwhile wait for the next one.
 */
const ACCEPTING = {
  batchMax: 1_000,
  parallel: 1,
  weight: { of: ([, bytes]: SpooledColumns) => bytes.length, max: 16 * 1024 * 1024 },
}

/** Describes the size class of a spooled mail: `small` for a mail of at most 64 KB, and `large` for a bigger mail. */
export type SpooledSize = 'small' | 'large'
/**
 * A mail with content for the object store counts as large. Therefore small mail still moves to PostgreSQL while the
 * object store is unreachable.
 */
const SMALL_BYTES = BLOB_BYTES
const WHERE = {
  small: `length(bytes) <= ${SMALL_BYTES}`,
  large: `length(bytes) > ${SMALL_BYTES}`,
} satisfies Record<SpooledSize, string>

export const sizeOf = (bytes: Uint8Array): SpooledSize =>
  bytes.length > SMALL_BYTES ? 'large' : 'small'

/** Describes a spooled mail that waits until the mover stores it in PostgreSQL. */
export type Arrival = Pick<SpooledMail, 'remoteIp' | 'inboxes'> & {
  id: number
  size: number
  /** Tells whether a mail service delivered the mail over HTTP. */
  isOverHttp: boolean
}

type SpoolRow = {
  id: number
  source_key: string
  bytes: Uint8Array
  envelope_from: string
  inboxes: string
  remote_ip: string
  helo: string
  received_at: number
  traceparent: string | null
  provider: string | null
}

/**
 * Holds accepted mail that waits for PostgreSQL in one SQLite file, the spool. With `synchronous = FULL` in WAL mode,
 * SQLite reports the success of a commit only when it is on disk. Therefore a message with a 250 reply survives a crash
 * of the process and of the machine. Several SMTP listeners may share the file, which also holds the local copy of the
 * inbox addresses.
 */
export class Spool {
  readonly #db: Database
  readonly #dataDir: string
  readonly #writer: SpoolWriter
  readonly #accepting: Batcher<SpooledColumns, boolean>
  #room = { untilMs: 0, bytes: 0 }
  /**
   * Holds the local copy of the inbox addresses in the spool's file. With this copy, the listener can accept mail while
   * PostgreSQL is unreachable.
   */
  readonly addresses: SpoolAddresses

  constructor(dataDir: string) {
    mkdirSync(dataDir, { recursive: true, mode: 0o700 })
    this.#dataDir = dataDir
    const file = join(dataDir, FILE)
    this.#db = new Database(file, { create: true, strict: true })
    // Only the user of this process may read the spool's file, because it holds mail. SQLite gives its -wal and -shm
    // files the same file mode.
    chmodSync(file, 0o600)
    this.#db.run('pragma busy_timeout = 5000')
    this.#db.run('pragma journal_mode = wal')
    this.#db.run('pragma synchronous = full')
    this.#db.run(`create table if not exists mails (
      id integer primary key, source_key text not null unique, bytes blob not null, envelope_from text not null,
      inboxes text not null, remote_ip text not null, helo text not null, received_at integer not null,
      traceparent text, provider text)`)
    this.#addColumns()
    // To reach a column that is stored after the mail's bytes, SQLite reads all pages of the mail. These indexes avoid
    // this. Without them, the count of 600 MB of waiting mail took a second, every five seconds, in the thread that
    // answers SMTP.
    this.#db.run('create index if not exists mails_received on mails (received_at)')
    for (const [size, condition] of Object.entries(WHERE)) {
      this.#db.run(`create index if not exists mails_${size}_senders
        on mails (id, length(bytes), remote_ip, inboxes, provider) where ${condition}`)
      // Earlier releases created an index without the column `provider`, and the new index replaces it.
      this.#db.run(`drop index if exists mails_${size}_arrivals`)
    }
    this.addresses = new SpoolAddresses(this.#db)
    this.#writer = new SpoolWriter(file)
    this.#accepting = createBatcher({
      ...ACCEPTING,
      run: async (mails: SpooledColumns[]) => {
        await this.#writer.accept(mails)
        return mails.map(() => true)
      },
    })
  }

  /**
   * Adds the columns that an earlier release did not create. The transaction locks the file, because another listener
   * may open the spool at the same time.
   */
  #addColumns(): void {
    const columns = this.#db.query<{ name: string }, []>(
      `select name from pragma_table_info('mails')`,
    )
    this.#db
      .transaction(() => {
        const known = columns.all().map(({ name }) => name)
        for (const name of ['traceparent', 'provider'])
          if (!known.includes(name)) this.#db.run(`alter table mails add column ${name} text`)
      })
      .immediate()
  }

  /** Tells whether the disk of the spool has room for `bytes` of mail in addition to the reserve. */
  hasRoom(bytes = 0): boolean {
    const nowMs = performance.now()
    if (nowMs >= this.#room.untilMs) {
      const { bavail, bsize } = statfsSync(this.#dataDir)
      this.#room = { untilMs: nowMs + ROOM_MS, bytes: bavail * bsize - RESERVE_BYTES }
    }
    // The check of the free disk space requires twice the size of the messages, because each message is on disk twice:
    // in the write-ahead log and in the spool's table.
    return this.#room.bytes > bytes * 2
  }

  /**
   * Stores a message in the spool. The returned promise resolves when the message is on disk. Messages that arrive at
   * the same moment share one transaction and one fsync.
   * @throws {SpoolFull} if the disk of the spool has no room for the message.
   */
  async accept(mail: NewSpooledMail): Promise<void> {
    if (!this.hasRoom(mail.bytes.length)) throw new SpoolFull('the disk of the spool is full')
    this.#room.bytes -= mail.bytes.length * 2
    await this.#accepting.submit([
      mail.sourceKey ?? crypto.randomUUID(),
      mail.bytes,
      mail.envelopeFrom,
      JSON.stringify(mail.inboxes),
      mail.remoteIp,
      mail.helo,
      mail.receivedAt.getTime(),
      mail.traceparent ?? null,
      mail.provider == null ? null : JSON.stringify(mail.provider),
    ])
  }

  /**
   * Returns the spooled mails of one size class with row ids above `after`, the oldest first. The list does not hold
   * the bytes of the mails.
   */
  arrivals(size: SpooledSize, after: number, limit: number): Arrival[] {
    const rows = this.#db
      .query<
        { id: number; size: number; remote_ip: string; inboxes: string; provider: string | null },
        { after: number; limit: number }
      >(
        `select id, length(bytes) as size, remote_ip, inboxes, provider from mails where ${WHERE[size]} and id > $after
         order by id limit $limit`,
      )
      .all({ after, limit })
    return rows.map(({ id, size, remote_ip: remoteIp, inboxes, provider }) => ({
      id,
      size,
      remoteIp,
      inboxes: JSON.parse(inboxes),
      isOverHttp: provider !== null,
    }))
  }

  /**
   * Returns the spooled mails with the given row ids, oldest first. A mail is missing in the result if another listener
   * has already moved it out of the spool.
   */
  read(ids: readonly number[]): (SpooledMail & { id: number })[] {
    const rows = this.#db
      .query<SpoolRow, { ids: string }>(
        'select * from mails where id in (select value from json_each($ids)) order by id',
      )
      .all({ ids: JSON.stringify(ids) })
    return rows.map((row) => ({
      id: row.id,
      sourceKey: row.source_key,
      bytes: row.bytes,
      envelopeFrom: row.envelope_from,
      inboxes: JSON.parse(row.inboxes),
      remoteIp: row.remote_ip,
      helo: row.helo,
      receivedAt: new Date(row.received_at),
      traceparent: row.traceparent,
      provider: row.provider === null ? null : JSON.parse(row.provider),
    }))
  }

  /** Removes mails from the spool after PostgreSQL has committed them. */
  remove = (sourceKeys: string[]): Promise<void> => this.#writer.remove(sourceKeys)

  /** Writes a consistent copy of the spool into another folder while SMTP listeners go on writing to the spool. */
  copyTo(folder: string): void {
    const file = join(folder, FILE)
    this.#db.query('vacuum into $file').run({ file })
    chmodSync(file, 0o600)
  }

  /** Returns the number of spooled mails, and the time of the oldest spooled mail in milliseconds since 1970. */
  depth(): { count: number; oldestAt: number | null } {
    return this.#db
      .query<{ count: number; oldestAt: number | null }, []>(
        'select count(*) as count, min(received_at) as oldestAt from mails',
      )
      .get()!
  }

  /** Closes the file of the spool after all pending writes have ended. */
  async close(): Promise<void> {
    await this.#accepting.drain()
    await this.#writer.close()
    this.#db.close()
  }
}
