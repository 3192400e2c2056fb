/** Runs test clients that each make one API call after another and record the responses. */
import { type Client, deliverMail, messagePath } from '../../support/service.ts'
import { PRICE, pay } from '../../support/till/till.ts'
import { waitFor } from '../../support/waitFor.ts'

type Paid = {
  nonce: string
  header: string
  /** Holds the Idempotency-Key of the call that redeems the payment. */
  key: string
  begunMs: number
  paymentId: string | null
  txHash: string | null
  /**
   * Holds the time at which the payment was redeemed, or null if it was not redeemed.
   */
  grantedMs: number | null
}

export type Done = {
  /** Holds the Message-IDs of mails that the SMTP listener accepted and that are in the inbox. */
  received: string[]
  sent: { messageId: string; key: string; body: object }[]
  secrets: { name: string; value: string }[]
  payments: Paid[]
  /** Lists responses that no client may get from a correct service. */
  surprises: string[]
}

export type Load = {
  done: Done
  /** Stops the clients from beginning new operations, and waits until all open operations have ended. */
  stop(): Promise<void>
}

const BUYERS = 3
/** Sets the number of test clients that send mail. Each of these clients has one unsent message at a time. */
export const SENDERS = 2

export function startLoad(options: {
  agent: Client
  inbox: string
  smtpPort: number
  resource: string
}): Load {
  const { agent, inbox, smtpPort, resource } = options
  const done: Done = { received: [], sent: [], secrets: [], payments: [], surprises: [] }
  let stopping = false
  const rounds = async (name: string, round: (token: string) => Promise<void>) => {
    for (let n = 1; !stopping; n++) {
      await round(`${name}-${n}`).catch((error) => done.surprises.push(`${name}: ${error.message}`))
    }
  }
  const clients = [
    rounds('in', async (token) => {
      const messageId = `<${token}@example.com>`
      const mail = { from: 'ada@example.com', to: inbox, subject: token, text: `Text ${token}` }
      await deliverMail(smtpPort, { ...mail, messageId })
      await waitFor('the message', async () => {
        return (await agent.get(messagePath(messageId))).status === 200
      })
      done.received.push(messageId)
    }),
    ...Array.from({ length: SENDERS }, (_, n) =>
      rounds(`out${n}`, async (token) => {
        const key = `send-${token}`
        const body = { to: [`${token}@example.net`], subject: token, text: `Text ${token}` }
        const { status, body: told } = await send(agent, { key, body })
        if (status !== 201) throw new Error(`the mail was answered ${status}`)
        const { messageId } = told
        done.sent.push({ messageId, key, body })
        await waitFor('the mail to be sent', () => isSent(agent, messageId), 60_000)
      }),
    ),
    rounds('vault', async (token) => {
      const secret = { name: token, value: `secret of ${token}` }
      const { status } = await agent.put(`/v0/vault/${token}`, {
        type: 'CUSTOM',
        data: { value: secret.value },
      })
      if (status !== 200) throw new Error(`the secret was answered ${status}`)
      done.secrets.push(secret)
    }),
    ...Array.from({ length: BUYERS }, (_, n) =>
      rounds(`pay${n}`, async (token) => {
        // The signed payment is valid for longer than the whole test, so it cannot expire before it is redeemed.
        const validBefore = BigInt(Math.floor(Date.now() / 1000) + 600)
        const { authorization, header } = await pay({ validBefore })
        const paid: Paid = {
          nonce: authorization.nonce.toLowerCase(),
          header,
          key: token,
          begunMs: performance.now(),
          paymentId: null,
          txHash: null,
          grantedMs: null,
        }
        done.payments.push(paid)
        await waitFor(
          'the end of the payment',
          async () => {
            const { body } = await redeem(agent, { resource, header, key: token })
            paid.paymentId = body.paymentId ?? null
            paid.txHash = body.txHash ?? null
            if (body.reason === 'settlement_pending') return false
            if (body.ok !== true) throw new Error(`the payment was refused: ${body.reason}`)
            return true
          },
          60_000,
        )
        paid.grantedMs = performance.now()
      }),
    ),
  ]
  return {
    done,
    async stop() {
      stopping = true
      await Promise.all(clients)
    },
  }
}

export const isSent = async (agent: Client, messageId: string): Promise<boolean> =>
  (await agent.get(messagePath(messageId))).body.deliveryStatus === 'sent'

export const send = (agent: Client, { key, body }: { key: string; body: object }) =>
  agent.post('/v0/messages/send', body, { 'idempotency-key': key })

export const redeem = (
  agent: Client,
  { resource, header, key }: { resource: string; header: string; key: string },
) =>
  agent.post(
    '/v0/payments/redeem',
    { paymentHeader: header, resource, amount: PRICE },
    { 'idempotency-key': key },
  )
