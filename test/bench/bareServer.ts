/** The baseline server: Elysia with the same queries and the same JSON, without keys, limits, validation or logs. */
import { Elysia } from 'elysia'
import { toItem, toWhole } from '../../api/messageView.ts'
import { createPool } from '../../sql/db.ts'
import { findMessage, listMessages } from '../../sql/messages.ts'

const pool = createPool({
  url: process.env.DATABASE_URL!,
  size: 16,
  name: 'bench',
  onError: () => {},
})
const projectId = process.env.BENCH_PROJECT!

const app = new Elysia()
  .get('/list', async () => {
    const { messages } = await listMessages(pool, {
      projectId,
      labels: [],
      after: null,
      before: null,
      cursor: null,
      limit: 20,
    })
    return { messages: messages.map(toItem), count: messages.length }
  })
  .get('/get/:id', async ({ params }) => toWhole((await findMessage(pool, projectId, params.id))!))
  .listen({ port: Number(process.env.PORT), hostname: '127.0.0.1' })

process.on('SIGTERM', async () => {
  await app.stop(true)
  await pool.end()
  process.exit(0)
})
process.stdout.write('"msg":"ready"\n')
