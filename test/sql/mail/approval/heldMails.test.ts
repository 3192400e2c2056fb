import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { createHash } from 'node:crypto'
import { findApproval, findApprovalOf } from '../../../../sql/account/approvals.ts'
import { deleteProject } from '../../../../sql/account/projects/deleteProject.ts'
import {
  decideHeld,
  type HeldDecision,
  storedHash,
  type Trust,
} from '../../../../sql/mail/approval/heldMails.ts'
import { deleteMessage } from '../../../../sql/mail/messages/deleteMail.ts'
import { cancelMail } from '../../../../sql/mail/outbound/cancelMail.ts'
import type { SendIntent } from '../../../../sql/mail/outbound/sendIntents.ts'
import { createTestDatabase, type TestDatabase } from '../../../support/database/database.ts'
import { eventsOf, newSent, recipientsOf, type SentRow } from '../../../support/mail/mailRows.ts'
import { newProject, whileHeld } from '../../../support/till/tillRows.ts'

const BYTES = Buffer.from('Subject: Offer\r\n\r\nText\r\n')
const hashOf = (bytes: Buffer) => createHash('sha256').update(bytes).digest()
const HASH = hashOf(BYTES)
const APPROVE = { state: 'approved', hash: HASH, trust: 'none' } as const
const HOUR_MS = 3_600_000

let database: TestDatabase
let pool: TestDatabase['pool']
beforeAll(async () => {
  database = await createTestDatabase()
  pool = database.pool
})
afterAll(() => database[Symbol.asyncDispose]())

type Held = SentRow & { id: string }

/**
 * Stores an outgoing mail that waits for approval, and its approval request. If `bytes` is absent, the mail is not
 * composed yet.
 */
async function hold({
  bytes = BYTES,
  ...changes
}: Partial<SendIntent> & { bytes?: Buffer | null } = {}): Promise<Held> {
  const sent = await newSent(pool, { held: true, ...changes })
  if (bytes !== null) {
    await pool.query(
      `with made as (insert into raw_mails (source_key, bytes) values (gen_random_uuid(), $2) returning id)
       update messages m set raw_id = made.id from made where m.row = $1`,
      [sent.row, bytes],
    )
  }
  const about = { projectId: sent.projectId, kind: 'mail', subject: sent.messageId } as const
  return { ...sent, id: (await findApprovalOf(pool, about))!.id }
}

const actorOf = (projectId: string) => ({ projectId, keyPrefix: 'owner', requestId: 'r' })
type Within = NonNullable<Parameters<typeof decideHeld>[2]['within']>
const decide = ({ id, projectId }: Held, decision: HeldDecision, within?: Within) =>
  decideHeld(pool, actorOf(projectId), {
    id,
    decision,
    ...(within === undefined ? {} : { within }),
  })
const kindOf = async (held: Held, decision: HeldDecision) => (await decide(held, decision))?.kind
const approvalOf = async ({ id }: Held) => (await findApproval(pool, id))!
const stateOf = async (held: Held) => (await approvalOf(held)).state
const makeLate = ({ id }: Held) =>
  pool.query('update approvals set expires_at = clock_timestamp() where id = $1', [id])

async function mailOf({ row }: Held) {
  const { rows } = await pool.query(
    `select m.delivery_status, m.delivery_error, m.labels, o.state, o.approved_hash, o.next_attempt_at, o.accepted_at
     from messages m join outbound_mails o on o.message_row = m.row where m.row = $1`,
    [row],
  )
  return rows[0]
}
async function jobAt({ row }: Held): Promise<Date | null> {
  const { rows } = await pool.query('select run_at from graphile_worker.jobs where key = $1', [
    `send_mail:${row}`,
  ])
  return rows[0]?.run_at ?? null
}
async function auditOf({ projectId }: Held) {
  const { rows } = await pool.query(
    `select action, actor, subject, detail, outcome from audit_log where project_id = $1 order by row`,
    [projectId],
  )
  return rows
}
async function knownTo({ projectId }: Held): Promise<string[]> {
  const { rows } = await pool.query<{ recipient: string }>(
    'select recipient from known_recipients where project_id = $1 order by recipient',
    [projectId],
  )
  return rows.map(({ recipient }) => recipient)
}

describe('an approval of a mail releases exactly the approved bytes', () => {
  test('an approval releases the mail at once with the approved bytes, and the audit log names the owner', async () => {
    const held = await hold()
    expect(await jobAt(held)).toBeNull()
    const before = Date.now()
    expect(await decide(held, APPROVE)).toMatchObject({
      kind: 'done',
      approval: {
        state: 'approved',
        contentHash: HASH,
        decidedBy: 'owner',
        decidedAt: expect.any(Date),
        reason: null,
      },
    })
    const mail = await mailOf(held)
    expect(mail).toMatchObject({
      delivery_status: 'queued',
      labels: ['sent'],
      state: 'queued',
      approved_hash: HASH,
    })
    expect(mail.next_attempt_at).toEqual(mail.accepted_at)
    expect(mail.next_attempt_at.getTime()).toBeGreaterThanOrEqual(before - 1)
    expect((await jobAt(held))!.getTime()).toBeLessThanOrEqual(Date.now())
    expect(await auditOf(held)).toEqual([
      {
        action: 'approval.approve',
        actor: 'owner',
        subject: held.messageId,
        detail: `sha256:${HASH.toString('hex')}`,
        outcome: 'ok',
      },
    ])
    expect(await eventsOf(pool, held.projectId)).toEqual([])
  })

  test('an approval schedules a mail for its later time of sending, or releases it at once if this time has passed', async () => {
    const later = new Date(Date.now() + HOUR_MS)
    const scheduled = await hold({ sendAt: later })
    await decide(scheduled, APPROVE)
    expect(await mailOf(scheduled)).toMatchObject({
      delivery_status: 'scheduled',
      labels: ['sent', 'scheduled'],
      next_attempt_at: later,
      accepted_at: later,
    })
    expect(await jobAt(scheduled)).toEqual(later)
    const passed = await hold({ sendAt: new Date(Date.now() - HOUR_MS) })
    await decide(passed, APPROVE)
    expect(await mailOf(passed)).toMatchObject({ delivery_status: 'queued', labels: ['sent'] })
    expect((await mailOf(passed)).next_attempt_at.getTime()).toBeGreaterThan(Date.now() - HOUR_MS)
  })

  test('an approval changes nothing if it is for other bytes than the stored bytes, or if the mail has no bytes yet', async () => {
    const [composed, bare] = [await hold(), await hold({ bytes: null })]
    const other = { ...APPROVE, hash: hashOf(Buffer.from('other')) }
    expect(await kindOf(composed, other)).toBe('changed')
    expect(await kindOf(bare, APPROVE)).toBe('changed')
    for (const held of [composed, bare]) {
      expect([await stateOf(held), await jobAt(held)]).toEqual(['waiting', null])
      expect((await mailOf(held)).state).toBe('held')
    }
    expect(await kindOf(composed, APPROVE)).toBe('done')
  })

  test('if the bytes of a mail are in the object store, the approval is compared with the hash of the content', async () => {
    const held = await hold({ bytes: Buffer.alloc(0) })
    const key = Buffer.alloc(32, 1)
    await pool.query(
      'insert into blobs (hash, key, size, content_hash) values ($1, $1, 1, $2) on conflict do nothing',
      [key, HASH],
    )
    await pool.query(
      'update raw_mails set blob = $2 where id = (select raw_id from messages where row = $1)',
      [held.row, key],
    )
    expect(await storedHash(pool, held.row)).toEqual(HASH)
    expect(await kindOf(held, APPROVE)).toBe('done')
  })

  test('an approval can also make the recipients or their domains trusted, but never a refused recipient', async () => {
    const trusted: [trust: Trust, known: string[]][] = [
      ['none', []],
      ['recipients', ['ada@one.example', 'bob@one.example', 'eve@xn--bcher-kva.example']],
      ['domains', ['@one.example', '@xn--bcher-kva.example']],
    ]
    for (const [trust, known] of trusted) {
      const held = await hold({
        to: ['Ada@One.example', 'bob@one.example'],
        bcc: ['eve@bücher.example', 'no@refused.example'],
        refused: [{ address: 'no@refused.example', reason: 'rule' }],
      })
      await decide(held, { ...APPROVE, trust })
      expect([trust, await knownTo(held)]).toEqual([trust, known])
    }
  })

  test('an approval may make recipients trusted that the project already trusts', async () => {
    const first = await hold()
    await decide(first, { ...APPROVE, trust: 'recipients' })
    const second = await hold({
      projectId: first.projectId,
      to: ['ada@example.com', 'b@c.example'],
    })
    expect(await kindOf(second, { ...APPROVE, trust: 'recipients' })).toBe('done')
    expect(await knownTo(first)).toEqual(['ada@example.com', 'b@c.example'])
  })

  test('an approval queues the job that reads waiting attachments, but only if an attachment waits', async () => {
    const [file, plain] = [await hold(), await hold()]
    await pool.query(
      'insert into attachment_texts (message_row, attachment_id, project_id) values ($1, $2, $3)',
      [file.row, 'a', file.projectId],
    )
    for (const held of [file, plain]) await decide(held, APPROVE)
    const { rows } = await pool.query<{ key: string }>(
      `select key from graphile_worker.jobs where key = any ($1)`,
      [[file, plain].map(({ projectId }) => `read_attachments:${projectId}`)],
    )
    expect(rows).toEqual([{ key: `read_attachments:${file.projectId}` }])
  })
})

describe('a rejected mail is never sent, and the agent gets the owner’s reason', () => {
  test('if the owner rejects a waiting mail, the mail is never sent, and the agent sees the owner’s reason', async () => {
    const held = await hold()
    const { kind, approval } = (await decide(held, { state: 'rejected', reason: 'too dear' }))!
    expect(kind).toBe('done')
    expect(approval).toMatchObject({
      state: 'rejected',
      decidedBy: 'owner',
      reason: 'too dear',
      contentHash: null,
    })
    const error = 'rejected by the owner: too dear'
    expect(await mailOf(held)).toMatchObject({
      delivery_status: 'rejected',
      delivery_error: error,
      labels: ['sent'],
      state: 'done',
    })
    expect(await recipientsOf(pool, held)).toMatchObject([{ state: 'failed', error }])
    expect(await auditOf(held)).toMatchObject([
      { action: 'approval.reject', subject: held.messageId, detail: 'too dear', outcome: 'ok' },
    ])
    expect(await eventsOf(pool, held.projectId)).toEqual(['message.rejected'])
  })

  test('a mail can be rejected without a reason, and before its bytes are composed', async () => {
    const held = await hold({ bytes: null })
    expect(await kindOf(held, { state: 'rejected', reason: null })).toBe('done')
    expect((await mailOf(held)).delivery_error).toBe('rejected by the owner')
    expect((await auditOf(held))[0].detail).toBeNull()
    expect((await approvalOf(held)).reason).toBeNull()
  })
})

describe('until an approval request expires, the owner’s first decision about it takes effect, and later decisions do not', () => {
  const REJECT = { state: 'rejected', reason: null } as const
  const EXPIRE = { state: 'expired' } as const

  test('the first decision about an approval request stays, and later decisions change nothing', async () => {
    const [approved, rejected] = [await hold(), await hold()]
    await decide(approved, APPROVE)
    await decide(rejected, REJECT)
    for (const decision of [APPROVE, REJECT, EXPIRE]) {
      expect(await kindOf(approved, decision)).toBe('before')
      expect(await kindOf(rejected, decision)).toBe('before')
    }
    expect([await stateOf(approved), await stateOf(rejected)]).toEqual(['approved', 'rejected'])
    expect((await mailOf(approved)).state).toBe('queued')
    expect((await auditOf(approved)).length).toBe(1)
  })

  test('of two simultaneous decisions about an approval request, only one takes effect', async () => {
    const held = await hold()
    const ends = await Promise.all([kindOf(held, APPROVE), kindOf(held, REJECT)])
    expect(ends.toSorted()).toEqual(['before', 'done'])
  })

  test('an approval request cannot expire before its time', async () => {
    const held = await hold()
    expect(await kindOf(held, EXPIRE)).toBe('before')
    expect(await stateOf(held)).toBe('waiting')
  })

  test('after its expiry time, an approval request can only expire, and no decision about it is accepted', async () => {
    for (const [decision, kind] of [
      [EXPIRE, 'done'],
      [APPROVE, 'late'],
      [REJECT, 'late'],
    ] as const) {
      const held = await hold()
      await makeLate(held)
      let ran = false
      const end = await decide(held, decision, async () => {
        ran = true
      })
      expect([end?.kind, end?.approval.state, ran]).toEqual([kind, 'expired', false])
      expect(await mailOf(held)).toMatchObject({
        delivery_status: 'expired',
        delivery_error: 'expired: nobody decided in time',
      })
      expect(await auditOf(held)).toMatchObject([{ action: 'approval.expire', detail: null }])
      expect(await eventsOf(pool, held.projectId)).toEqual(['message.rejected'])
    }
  })

  test('an approval request cannot be found from another project, after its project is deleted, or under another id', async () => {
    const [held, gone] = [await hold(), await hold()]
    expect(await decide({ ...held, projectId: gone.projectId }, APPROVE)).toBeNull()
    expect(await decide({ ...held, id: 'apr_none' }, APPROVE)).toBeNull()
    await deleteProject(pool, gone.projectId, null)
    expect(await decide(gone, APPROVE)).toBeNull()
    expect(await stateOf(held)).toBe('waiting')
  })

  test('an approval request for a payment cannot be decided like an approval request for a mail', async () => {
    const held = await hold()
    await pool.query(`update approvals set kind = 'payment' where id = $1`, [held.id])
    expect(await decide(held, APPROVE)).toBeNull()
    expect(await stateOf(held)).toBe('waiting')
  })

  test('a decision about a mail and the other database changes of the caller succeed or fail together in one transaction', async () => {
    const note =
      ({ projectId }: Held): Within =>
      async (db) => {
        await db.query(`insert into known_recipients (project_id, recipient) values ($1, 'note')`, [
          projectId,
        ])
      }
    for (const decision of [APPROVE, REJECT]) {
      const held = await hold()
      await decide(held, decision, note(held))
      expect(await knownTo(held)).toEqual(['note'])
      const failing = await hold()
      const fault = decide(failing, decision, async (db) => {
        await note(failing)(db)
        throw new Error('the link was used')
      })
      await expect(fault).rejects.toThrow('the link was used')
      expect([await stateOf(failing), await knownTo(failing)]).toEqual(['waiting', []])
    }
    const changed = await hold()
    await decide(changed, { ...APPROVE, hash: hashOf(Buffer.alloc(1)) }, note(changed))
    expect(await knownTo(changed)).toEqual([])
  })
})

describe('an agent can withdraw its mail that waits for approval until the owner decides', () => {
  test('after the agent has withdrawn a mail, the owner can no longer decide about it', async () => {
    const held = await hold()
    const agent = { ...actorOf(held.projectId), keyPrefix: 'agent' }
    expect(await cancelMail(pool, agent, held.messageId)).toBe('cancelled')
    expect(await mailOf(held)).toMatchObject({
      delivery_status: 'cancelled',
      delivery_error: 'withdrawn before a decision',
      state: 'done',
    })
    expect(await approvalOf(held)).toMatchObject({ state: 'withdrawn', decidedBy: 'agent' })
    expect(await auditOf(held)).toMatchObject([
      { action: 'approval.withdraw', subject: held.messageId, actor: 'agent', outcome: 'ok' },
    ])
    expect(await kindOf(held, APPROVE)).toBe('before')
    expect(await eventsOf(pool, held.projectId)).toEqual([])
  })

  test('an agent can withdraw a waiting mail even if its approval request no longer exists', async () => {
    const held = await hold()
    await pool.query('delete from approvals where id = $1', [held.id])
    expect(await cancelMail(pool, actorOf(held.projectId), held.messageId)).toBe('cancelled')
    expect((await mailOf(held)).delivery_status).toBe('cancelled')
  })

  test('if an agent deletes a mail, an undecided approval request is withdrawn, but a decided one stays as decided', async () => {
    const projectId = await newProject(pool)
    const [gone, stays, decided] = [
      await hold({ projectId }),
      await hold({ projectId }),
      await hold({ projectId }),
    ]
    await decide(decided, APPROVE)
    for (const { messageId } of [gone, decided]) await deleteMessage(pool, projectId, messageId)
    expect(await approvalOf(gone)).toMatchObject({
      state: 'withdrawn',
      decidedBy: 'deleted',
      decidedAt: expect.any(Date),
    })
    expect([await stateOf(stays), await stateOf(decided)]).toEqual(['waiting', 'approved'])
    expect(await kindOf(gone, APPROVE)).toBe('before')
  })
})

test('a decision about a mail has no effect if its approval request is deleted at the same time', async () => {
  const held = await hold()
  const decided = await whileHeld(pool, 'delete from approvals where id = $1', [held.id], () => [
    decide(held, APPROVE),
  ])
  expect(decided).toEqual([null])
})
