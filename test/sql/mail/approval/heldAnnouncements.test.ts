/** Tests which people the service notifies about a mail that waits for approval, and how often. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { addApprovalLink } from '../../../../sql/account/approvalLinks.ts'
import { findApproval, findApprovalOf } from '../../../../sql/account/approvals.ts'
import { deleteProject } from '../../../../sql/account/projects/deleteProject.ts'
import {
  announceHeld,
  findNotice,
  recordNotice,
  recordNotified,
  requeueLostApprovals,
} from '../../../../sql/mail/approval/heldAnnouncements.ts'
import { decideHeld } from '../../../../sql/mail/approval/heldMails.ts'
import { cancelMail } from '../../../../sql/mail/outbound/cancelMail.ts'
import { createTestDatabase, type TestDatabase } from '../../../support/database/database.ts'
import { eventsOf, newSent } from '../../../support/mail/mailRows.ts'
import { dropJobs } from '../../../support/till/tillRows.ts'

const ADA = 'ada@owner.example'
const BOB = 'bob@owner.example'
const EVE = 'eve@owner.example'

let database: TestDatabase
let pool: TestDatabase['pool']
beforeAll(async () => {
  database = await createTestDatabase()
  pool = database.pool
})
afterAll(() => database[Symbol.asyncDispose]())

/** Stores a mail that waits for the approval of its project's approver. */
async function hold(approver: string | null = ADA) {
  const { projectId, messageId } = await newSent(pool, { held: true })
  await pool.query('update projects set approver_email = $2 where id = $1', [projectId, approver])
  const about = { projectId, kind: 'mail', subject: messageId } as const
  return (await findApprovalOf(pool, about))!
}

async function addOwner(projectId: string, address: string, role = 'owner'): Promise<void> {
  await pool.query(
    `with person as (
       insert into people (id, name, email, role) values ('per_' || gen_random_uuid(), 'Owner', $2, $3) returning id)
     insert into person_projects (person_id, project_id) select id, $1 from person`,
    [projectId, address, role],
  )
}

async function runAt(key: string): Promise<Date | null> {
  const { rows } = await pool.query('select run_at from graphile_worker.jobs where key = $1', [key])
  return rows[0]?.run_at ?? null
}

/** Stores the approval link that a notification to the given address contains. */
const link = (approvalId: string, address: string) =>
  addApprovalLink(pool, { token: `${approvalId}${address}`, approvalId, address })

const addressesOf = async (approvalId: string) => (await findNotice(pool, approvalId))?.addresses
const actorOf = (projectId: string) => ({ projectId, keyPrefix: 'agent', requestId: 'r' })

describe('the service announces a mail that waits for approval only once, and only while it waits', () => {
  test('the project gets one event about a mail that waits for approval, and the expiry of the approval request is scheduled', async () => {
    const [approval, other] = [await hold(), await hold()]
    expect([await announceHeld(pool, approval), await announceHeld(pool, approval)]).toEqual([
      true,
      true,
    ])
    expect(await eventsOf(pool, approval.projectId)).toEqual(['message.held'])
    expect(await runAt(`expire_approval:${approval.id}`)).toEqual(approval.expiresAt)
    expect(await announceHeld(pool, other)).toBe(true)
    expect(await eventsOf(pool, other.projectId)).toEqual(['message.held'])
  })

  test('if a mail no longer waits for approval, the project gets no event about its approval', async () => {
    const withdrawn = await hold()
    await cancelMail(pool, actorOf(withdrawn.projectId), withdrawn.subject)
    expect(await announceHeld(pool, withdrawn)).toBe(false)
    expect(await announceHeld(pool, { ...(await hold()), subject: '<none@mail.test>' })).toBe(false)
    expect(await eventsOf(pool, withdrawn.projectId)).toEqual([])
  })

  test('if the approval request of a mail is already decided, the project gets no event about it', async () => {
    const approval = await hold()
    await pool.query(`update approvals set state = 'rejected' where id = $1`, [approval.id])
    await announceHeld(pool, approval)
    expect(await eventsOf(pool, approval.projectId)).toEqual([])
  })
})

describe('the approver and the owners of a project get one notification about each mail that waits for approval', () => {
  test('the notification about a waiting mail goes to the approver and to the owners of the project, once to each of them', async () => {
    const approval = await hold('Ada@Owner.example')
    await addOwner(approval.projectId, BOB)
    await addOwner(approval.projectId, ADA)
    await addOwner(approval.projectId, 'viewer@owner.example', 'viewer')
    await addOwner((await hold()).projectId, 'other@owner.example')
    expect(await findNotice(pool, approval.id)).toEqual({
      addresses: [ADA, BOB],
      projectName: 'Seller',
      attempts: 0,
      requestedAt: approval.requestedAt,
    })
  })

  test('if a project has no approver, nobody gets a notification about a waiting mail', async () => {
    expect(await findNotice(pool, (await hold(null)).id)).toBeNull()
  })

  test('nobody gets a notification about a mail after the decision, or after the project is deleted', async () => {
    const [withdrawn, deleted] = [await hold(), await hold()]
    await cancelMail(pool, actorOf(withdrawn.projectId), withdrawn.subject)
    await deleteProject(pool, deleted.projectId, null)
    expect([await findNotice(pool, withdrawn.id), await findNotice(pool, deleted.id)]).toEqual([
      null,
      null,
    ])
    expect(await findNotice(pool, 'apr_none')).toBeNull()
  })

  test('a repeated run of the notification job sends a notification only to addresses that have not got one', async () => {
    const [approval, other] = [await hold(), await hold()]
    await addOwner(approval.projectId, EVE)
    for (const address of [ADA, EVE]) await link(approval.id, address)
    await link(other.id, ADA)
    const beforeMs = Date.now()
    await recordNotified(pool, approval.id, ADA)
    await recordNotice(pool, approval.id, 60_000)
    expect(await findNotice(pool, approval.id)).toMatchObject({ addresses: [EVE], attempts: 1 })
    expect(await findNotice(pool, other.id)).toMatchObject({ addresses: [ADA], attempts: 0 })
    expect((await runAt(`announce_approval:${approval.id}`))!.getTime()).toBeWithin(
      beforeMs + 60_000,
      Date.now() + 60_001,
    )
    await recordNotified(pool, approval.id, EVE)
    await recordNotice(pool, approval.id, 60_000)
    expect(await findNotice(pool, approval.id)).toBeNull()
  })

  test('after the last attempt of the job that notifies approvers, the notifications of its approval request end, and those of other requests continue', async () => {
    const [approval, other] = [await hold(), await hold()]
    await link(approval.id, ADA)
    await dropJobs(pool)
    await recordNotice(pool, approval.id, null)
    expect(await runAt(`announce_approval:${approval.id}`)).toBeNull()
    expect(await addressesOf(approval.id)).toBeUndefined()
    expect(await addressesOf(other.id)).toEqual([ADA])
    expect((await findApproval(pool, approval.id))?.state).toBe('waiting')
  })

  test('a second notification to an address does not change the stored time of the first notification', async () => {
    const approval = await hold()
    await link(approval.id, ADA)
    const notifiedAt = async () => {
      const { rows } = await pool.query(
        'select notified_at from approval_links where approval_id = $1',
        [approval.id],
      )
      return rows[0].notified_at
    }
    await recordNotified(pool, approval.id, ADA)
    await recordNotice(pool, approval.id, 0)
    await pool.query(
      `update approval_links set notified_at = '2001-01-01' where approval_id = $1`,
      [approval.id],
    )
    const first = await notifiedAt()
    await recordNotified(pool, approval.id, ADA)
    await recordNotice(pool, approval.id, 0)
    expect(await notifiedAt()).toEqual(first)
  })
})

test('an approval request gets its jobs together with the mail, and lost or failed jobs are queued again', async () => {
  const approval = await hold()
  const keys = [`announce_approval:${approval.id}`, `expire_approval:${approval.id}`] as const
  const times = async () => [await runAt(keys[0]), await runAt(keys[1])]
  expect(await times()).toEqual([expect.any(Date), approval.expiresAt])
  await dropJobs(pool)
  expect(await requeueLostApprovals(pool)).toBe(0)
  const age = () =>
    pool.query(`update approvals set requested_at = requested_at - interval '61 seconds'`)
  await age()
  expect(await requeueLostApprovals(pool)).toBeGreaterThanOrEqual(2)
  expect(await times()).toEqual([expect.any(Date), approval.expiresAt])
  expect(await requeueLostApprovals(pool)).toBe(0)
  const failed = (set: string) =>
    pool.query(`update graphile_worker._private_jobs set attempts = max_attempts, ${set}`)
  await failed('locked_at = now()')
  expect(await requeueLostApprovals(pool)).toBe(0)
  await announceHeld(pool, approval)
  await failed('locked_at = null')
  await requeueLostApprovals(pool)
  const { rows } = await pool.query(
    'select key from graphile_worker.jobs where key = any ($1) and attempts = 0',
    [keys],
  )
  expect(rows.map(({ key }) => key)).toEqual([keys[1]])
})

test('an approval request whose mail has disappeared ends at its expiry', async () => {
  const { id, projectId, subject } = await hold()
  await pool.query('delete from messages where project_id = $1 and message_id = $2', [
    projectId,
    subject,
  ])
  const decision = { state: 'expired' } as const
  await decideHeld(pool, actorOf(projectId), { id, decision })
  expect(await findApproval(pool, id)).toMatchObject({ state: 'withdrawn', decidedBy: 'deleted' })
})
