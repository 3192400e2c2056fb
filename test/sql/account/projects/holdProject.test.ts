import { expect, test } from 'bun:test'
import { deleteProject } from '../../../../sql/account/projects/deleteProject.ts'
import { ProjectGoneError } from '../../../../sql/account/projects/holdProject.ts'
import { createProjectWebhook } from '../../../../sql/events/webhooks.ts'
import { createDraft } from '../../../../sql/mail/approval/drafts.ts'
import { createRule } from '../../../../sql/mail/inbound/emailRules.ts'
import { createTestDatabase } from '../../../support/database/database.ts'
import { HOOK, KEYRING } from '../../../support/events/eventRows.ts'
import { newProject } from '../../../support/till/tillRows.ts'

test('a request that began before its project was deleted stores no row in the project', async () => {
  await using database = await createTestDatabase()
  const { pool } = database
  const projectId = await newProject(pool)
  const makers = [
    () => createProjectWebhook(pool, KEYRING, { projectId, url: HOOK, events: ['message.sent'] }),
    () => createRule(pool, projectId, { type: 'BLOCK', scope: 'RECEIVE', value: '*@spam.example' }),
    () => createDraft(pool, projectId, { content: { subject: 'Offer' }, attachments: [] }),
  ]
  for (const make of makers) expect(await make()).toBeDefined()
  await deleteProject(pool, projectId, null)
  for (const make of makers) {
    expect(await make().catch((error: unknown) => error)).toBeInstanceOf(ProjectGoneError)
  }
  const { rows } = await pool.query(
    `select (select count(*) from project_webhooks)::int as webhooks, (select count(*) from email_rules)::int as rules,
       (select count(*) from drafts)::int as drafts`,
  )
  expect(rows).toEqual([{ webhooks: 1, rules: 1, drafts: 1 }])
})
