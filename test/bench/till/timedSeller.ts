/**
 * Runs the seller of the purse (wallet) benchmark. The setting KEY is a project key with `payments:accept`, and API is
 * the URL of the service. The path `/times` returns as JSON the milliseconds of each request since the previous call of
 * `/times`, in order.
 */
import { Hono } from 'hono'
import { Purser } from '../../../api/client/main.ts'
import { requirePayment } from '../../../api/client/paywalls/honoPaywall.ts'

const { KEY = '', API = '' } = process.env
const purser = new Purser({ apiKey: KEY, baseUrl: API })
let times: number[] = []

const app = new Hono()
app.get('/times', (context) => {
  const taken = times
  times = []
  return context.json(taken)
})
app.use(async (_context, next) => {
  const startedMs = performance.now()
  await next()
  times.push(performance.now() - startedMs)
})
app.get('/weather', requirePayment({ purser, amount: '0.01' }), (context) =>
  context.text('The weather is fine.\n'),
)

const server = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: app.fetch })
const resource = `http://127.0.0.1:${server.port}/weather`
await purser.sellers.put({ urlPattern: resource, priceUsdc: '0.01' })
process.stdout.write(`selling at ${resource}\n`)
