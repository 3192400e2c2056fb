/** Many rows for the console's lists. */
import type { Page } from 'playwright-core'
import type { Agent, TestService } from '../service.ts'

/** Deliveries of a webhook, the first created first; `event-N` is in the URL. */
export async function addDeliveries(
  { database }: TestService,
  agent: Agent,
  { count, status = 'delivered' }: { count: number; status?: string },
): Promise<string> {
  const { body } = await agent.post('/v0/webhooks', {
    url: 'https://hooks.example.com/desk',
    events: ['message.received'],
  })
  await database.pool.query(
    `insert into webhook_deliveries (id, project_id, webhook_id, event, idempotency_key, url, body, status, attempt, created_at)
     select $1 || lpad(n::text, 8, '0'), $2, $3, 'message.received', 'k' || n, 'https://hooks.example.com/event-' || n || '/', '',
            $4, 1, clock_timestamp() - ($5::int - n) * interval '1 minute'
     from generate_series(1, $5::int) n`,
    [`whd_${body.webhookId.slice(-16)}`, agent.project.id, body.webhookId, status, count],
  )
  return body.webhookId
}

/** The texts of a column in the rows of a table that are elements now. */
export const cellsOf = (page: Page, table: string, column: string): Promise<string[]> =>
  page
    .getByRole('table', { name: table, exact: true })
    .locator(`tr[data-row] td[data-label="${column}"]`)
    .allInnerTexts()
