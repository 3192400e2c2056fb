/** Makes many rows for the lists of the console. */
import type { Page } from 'playwright-core'
import type { Agent, TestService } from '../service.ts'

/**
 * Adds deliveries of a webhook to the database, oldest first. The URL of each delivery contains `event-N`. @returns the
 * id of the webhook
 */
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

/**
 * Returns the texts of a table column in the console. A row that is being rendered at this moment is left out.
 */
export const cellsOf = (page: Page, table: string, column: string): Promise<string[]> =>
  page
    .getByRole('table', { name: table, exact: true })
    .locator(`tr[data-row] td[data-label="${column}"]`)
    .allInnerTexts()
