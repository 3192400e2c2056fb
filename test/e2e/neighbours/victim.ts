import { deliverRaw } from '../../support/mail/smtpTalk.ts'
import { pay, redeem } from '../../support/till/till.ts'
import type { Neighbourhood } from './service.ts'

/** Lists the operations of the victim project that the test measures. */
export const OPERATIONS = ['whoami', 'list', 'send', 'redeem', 'inbound mail'] as const
type Operation = (typeof OPERATIONS)[number]
type Times = Record<Operation, number[]>
/** Holds how long each call of the victim project took, and the responses of its failed calls. */
export type Observed = { times: Times; failures: string[] }

/** Repeats the operations of the victim project for a time, and records the duration of each operation. */
export async function observe(
  { victim, smtpPort }: Neighbourhood,
  durationMs: number,
): Promise<Observed> {
  const times = Object.fromEntries(OPERATIONS.map((name) => [name, [] as number[]])) as Times
  const failures: string[] = []
  const timed = async (name: Operation, work: () => Promise<string>, wanted: RegExp) => {
    const startMs = performance.now()
    const answer = await work().catch((error: unknown) => String(error))
    times[name].push(performance.now() - startMs)
    if (!wanted.test(answer)) failures.push(`${name}: ${answer}`)
  }
  const status = async (call: Promise<{ status: number }>) => String((await call).status)
  const endMs = performance.now() + durationMs
  const until = async (work: () => Promise<unknown>) => {
    do await work()
    while (performance.now() < endMs)
  }
  await Promise.all([
    until(async () => {
      await timed('whoami', () => status(victim.get('/v0/whoami')), /^200$/)
      await timed('list', () => status(victim.get('/v0/messages?limit=20')), /^200$/)
      const mail = { to: ['a@example.com'], subject: 's', text: 'x' }
      await timed('send', () => status(victim.post('/v0/messages/send', mail)), /^201$/)
      await Bun.sleep(50)
    }),
    until(async () => {
      const { header } = await pay()
      const redeemed = async () => JSON.stringify((await redeem(victim as never, header)).body)
      await timed('redeem', redeemed, /"ok":true/)
      await Bun.sleep(50)
    }),
    until(async () => {
      await timed('inbound mail', () => receiveOne(victim, smtpPort), /^arrived$/)
      await Bun.sleep(50)
    }),
  ])
  return { times, failures }
}

/** Delivers a mail to the victim project, and waits until its inbox has the message. */
async function receiveOne(victim: Neighbourhood['victim'], smtpPort: number): Promise<string> {
  const subject = crypto.randomUUID()
  const after = encodeURIComponent(new Date(Date.now() - 1_000).toISOString())
  const wait = victim.get(`/v0/messages/wait?timeout=30&subject=${subject}&after=${after}`)
  const reply = await deliverRaw(smtpPort, victim.address, `Subject: ${subject}\n\nHello\n`)
  if (!reply.startsWith('250')) return reply
  const { status, body } = await wait
  return body?.subject === subject ? 'arrived' : `wait answered ${status}`
}

/** Returns the time within which the service responds to 99 of 100 calls. */
export const p99 = (times: readonly number[]): number =>
  times.toSorted((a, b) => a - b)[Math.max(0, Math.ceil(times.length * 0.99) - 1)] ?? Number.NaN
