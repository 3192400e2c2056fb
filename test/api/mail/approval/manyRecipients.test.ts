/** Tests the send policy `approve-new` for a project that has written to very many recipients. */
import { expect, test } from 'bun:test'
import { newSent } from '../../../support/mail/mailRows.ts'
import { sendMail } from '../../../support/mail/outbound.ts'
import { startTestService } from '../../../support/service.ts'
import '../../../support/long.ts'

test('a project can get the policy approve-new although storing the recipients of its earlier mail takes longer than a statement may run', async () => {
  await using service = await startTestService({ smtp: false, workers: false })
  const agent = await service.newAgent()
  const { pool } = service.database
  const { row } = await newSent(pool, { projectId: agent.project.id })
  await pool.query(
    `insert into outbound_recipients (message_row, address, state)
     select $1, 'Ada' || n || '@example.com', 'sent' from generate_series(1, 3000) n`,
    [row],
  )
  // Each new row of `known_recipients` takes four milliseconds, as on a busy disk.
  await pool.query(`
    create function slow() returns trigger language plpgsql as
      $$ begin perform pg_sleep(0.004); return new; end $$;
    create trigger slow before insert on known_recipients for each row execute function slow()`)
  const path = `/v0/platform/projects/${agent.project.id}`
  const { status, body } = await service.platform.patch(path, { sendPolicy: 'approve-new' })
  expect([status, body.sendPolicy]).toEqual([200, 'approve-new'])
  const known = await sendMail(agent, { to: ['ada3000@example.com'] })
  expect(known.deliveryStatus).toBeUndefined()
  const unknown = await sendMail(agent, { to: ['eve@example.com'] })
  expect(unknown.deliveryStatus).toBe('held')
})
