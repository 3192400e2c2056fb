import { expect, test } from 'bun:test'
import { audit } from './auditor.ts'
import { LATE_WRITE_MS } from './auditVault.ts'
import { PATHS } from './auditWebhooks.ts'
import type { Delivered, Evidence, PurchaseRecord } from './evidence.ts'
import type { Ledger, MailIn, MailOut, Paid, VaultName } from './ledger.ts'

const INBOX = 'agent@mail.test'
const PEER = 'peer@mail.test'

const mailIn = (): MailIn => ({
  messageId: '<in1@example.com>',
  inbox: INBOX,
  subject: 'in1',
  told: 'accepted',
  refusal: null,
  attempts: 1,
  labels: [{ label: 'seen', told: 'accepted' }],
  deleted: null,
  waited: { told: 'accepted', messageId: '<in1@example.com>' },
})

const mailOut = (): MailOut => ({
  token: 'out1',
  key: 'send-out1',
  sender: INBOX,
  remote: ['bob@example.net'],
  local: [PEER],
  inReplyTo: null,
  told: 'accepted',
  refusal: null,
  messageIds: ['<s1@mail.test>', '<s1@mail.test>'],
})

const paid = (): Paid => ({
  nonce: '0x01',
  payer: '0xaa',
  amountAtomic: '10000',
  told: 'accepted',
  answers: [
    { key: 'redeem-1', ok: true, reason: null, paymentId: 'pay_1', txHash: '0xt1' },
    {
      key: 'stranger',
      ok: false,
      reason: 'duplicate_settlement',
      paymentId: 'pay_1',
      txHash: '0xt1',
    },
  ],
})

const bought = (n: string, money: PurchaseRecord['money']): PurchaseRecord => ({
  id: `pur_${n}`,
  key: `buy-${n}`,
  state: 'answered',
  ended: true,
  money,
  nonce: `0xb${n}`,
  amountAtomic: '10000',
  txHash: money === 'spent' ? '0xb2' : null,
})

const put = (value: string | null, startMs: number) => ({
  value,
  startMs,
  endMs: startMs + 10,
  told: 'accepted' as const,
})

const vaultName = (): VaultName => ({
  name: 'v',
  writes: [put('1', 100), put(null, 200), put('2', 300)],
  reads: [
    { value: null, startMs: 50, endMs: 60 },
    { value: '1', startMs: 150, endMs: 160 },
  ],
})

const delivery = (path: string, event: string, subjectId: string): Delivered => ({
  path,
  idempotencyKey: `whd_${event}_${subjectId}`,
  event,
  subjectId,
  bodyHash: 'b',
  genuine: true,
  status: 200,
})

const HEARD = [
  ['message.received', '<in1@example.com>'],
  ['message.sent', '<s1@mail.test>'],
  ['payment.settled', 'pay_1'],
] as const

/**
 * Returns the ledger (the responses that clients got) and the evidence (the state of the service) of a chaos run
 * without a fault.
 */
function faultlessRun(): { ledger: Ledger; evidence: Evidence } {
  return {
    ledger: {
      mailsIn: [mailIn()],
      mailsOut: [mailOut()],
      payments: [paid()],
      purchases: [
        { key: 'buy-1', told: 'accepted', purchaseIds: ['pur_1', 'pur_1'], refusal: null },
      ],
      vault: [vaultName()],
      listeners: [
        {
          inbox: INBOX,
          heard: HEARD.map(([type, subjectId], n) => ({ id: String(n + 1), type, subjectId })),
        },
        {
          inbox: PEER,
          heard: [{ id: '1', type: 'message.received', subjectId: '<s1@mail.test>' }],
        },
      ],
      surprises: [],
    },
    evidence: {
      inboxes: {
        [INBOX]: [
          {
            messageId: '<in1@example.com>',
            subject: 'in1',
            labels: ['received', 'unread', 'seen'],
          },
          { messageId: '<s1@mail.test>', subject: 'out1', labels: ['sent'] },
        ],
        [PEER]: [{ messageId: '<s1@mail.test>', subject: 'out1', labels: ['received', 'unread'] }],
      },
      sunk: [
        {
          messageId: '<s1@mail.test>',
          to: ['bob@example.net'],
          subject: 'out1',
          contentHash: 'c',
          beganMs: 100,
        },
      ],
      used: [
        { nonce: '0x01', payer: '0xaa', txHash: '0xt1', amountAtomic: '10000' },
        { nonce: '0xb1', payer: '0xPU', txHash: '0xb2', amountAtomic: '10000' },
      ],
      purse: {
        address: '0xpu',
        paidAtomic: '10000',
        purchases: [bought('1', 'spent'), bought('2', 'open'), bought('3', 'released')],
        mandate: { limit: '20000', reserved: '30000', spent: '10000', released: '10000' },
      },
      mailFaults: { killedMs: [], cutMs: [] },
      transferCount: 1,
      payments: [{ id: 'pay_1', nonce: '0x01', status: 'settled', txHash: '0xt1' }],
      delivered: [
        delivery(PATHS.payments, 'payment.received', 'pay_1'),
        ...HEARD.map(([type, subjectId]) => delivery(PATHS.events, type, subjectId)),
      ],
      vault: { v: '2' },
      newestEvent: { [INBOX]: 3, [PEER]: 1 },
      deliveryStatus: { '<s1@mail.test>': 'sent' },
      lockedJobs: [],
      jobs: [],
      openRows: [],
    },
  }
}

test('the auditor (which checks a chaos test run) finds no contradiction in a faultless run', () => {
  const { ledger, evidence } = faultlessRun()
  expect(audit(ledger, evidence)).toEqual([])
})

test('if the response to an operation was lost, the auditor of the chaos test accepts both outcomes', () => {
  const { ledger, evidence } = faultlessRun()
  ledger.mailsIn.push({
    ...mailIn(),
    messageId: '<in2@e>',
    subject: 'in2',
    told: 'unknown',
    waited: null,
  })
  ledger.mailsOut.push({ ...mailOut(), token: 'out2', told: 'unknown', messageIds: [] })
  ledger.payments.push({ ...paid(), nonce: '0x02', told: 'unknown', answers: [] })
  ledger.vault[0]!.writes.push({ ...put('3', 400), told: 'unknown' })
  expect(audit(ledger, evidence)).toEqual([])
  evidence.vault.v = '3'
  expect(audit(ledger, evidence)).toEqual([])
})

test('the auditor of the chaos test accepts a repeated mail if Message-ID, Idempotency-Key and content are the same', () => {
  const { ledger, evidence } = faultlessRun()
  evidence.sunk.push({ ...evidence.sunk[0]!, beganMs: 200 }, { ...evidence.sunk[0]!, beganMs: 300 })
  evidence.mailFaults = { killedMs: [150], cutMs: [250] }
  evidence.delivered.push({ ...evidence.delivered[0]!, status: 500 })
  expect(audit(ledger, evidence)).toEqual([])
})

type Run = ReturnType<typeof faultlessRun>
const events = ({ ledger }: Run) => ledger.listeners[0]!.heard

/** Maps the description of a broken rule to the findings that the auditor must then report. */
const BROKEN: Record<string, [(run: Run) => void, string[]]> = {
  'a mail is repeated without a crash': [
    ({ evidence }) => {
      evidence.sunk.push({ ...evidence.sunk[0]!, beganMs: 200 })
      evidence.mailFaults = { killedMs: [50, 250], cutMs: [99, 201] }
    },
    ['mail out: out1 reached bob@example.net again without a crash'],
  ],
  'more mails are repeated than connections were ended': [
    ({ evidence }) => {
      const [sunk] = evidence.sunk
      for (const to of ['x@example.net', 'y@example.net']) {
        evidence.sunk.push({ ...sunk!, to: [to] }, { ...sunk!, to: [to], beganMs: 200 })
      }
      evidence.mailFaults.cutMs = [150]
    },
    ['mail out: 2 repeats, at most 1 by a cut'],
  ],
  'a message is lost': [
    ({ evidence }) => evidence.inboxes[INBOX]!.shift(),
    ['mail in: <in1@example.com> was accepted and is not in agent@mail.test'],
  ],
  'a message is kept twice': [
    ({ evidence }) =>
      evidence.inboxes[INBOX]!.push({ ...evidence.inboxes[INBOX]![0]!, labels: ['seen'] }),
    ['mail in: <in1@example.com> is 2 times in agent@mail.test'],
  ],
  'a message to a known inbox is refused': [
    ({ ledger }) => Object.assign(ledger.mailsIn[0]!, { told: 'refused', refusal: '550 no' }),
    ['mail in: <in1@example.com> for agent@mail.test was refused for good: 550 no'],
  ],
  'a deleted message is still in its inbox': [
    ({ ledger, evidence }) => {
      ledger.mailsIn[0]!.deleted = 'accepted'
      evidence.inboxes[INBOX]![0]!.labels = ['read']
    },
    ['mail in: <in1@example.com> was deleted and is in agent@mail.test'],
  ],
  'a deletion is refused': [
    ({ ledger }) => {
      ledger.mailsIn[0]!.deleted = 'refused'
    },
    ['mail in: the deletion of <in1@example.com> was refused'],
  ],
  'a label is lost': [
    ({ evidence }) => {
      evidence.inboxes[INBOX]![0]!.labels = ['received']
    },
    ['labels: seen was added to <in1@example.com> and is not there'],
  ],
  'a label is refused': [
    ({ ledger }) => {
      ledger.mailsIn[0]!.labels[0]!.told = 'refused'
    },
    ['labels: seen was refused for <in1@example.com>'],
  ],
  'a waiter is told of another message': [
    ({ ledger }) => {
      ledger.mailsIn[0]!.waited!.messageId = '<other@e>'
    },
    ['wait: who waited for <in1@example.com> was told of <other@e>'],
  ],
  'a waiter is refused': [
    ({ ledger }) => {
      ledger.mailsIn[0]!.waited!.told = 'refused'
    },
    ['wait: waiting for <in1@example.com> was refused'],
  ],
  'a sent message does not arrive at a remote recipient': [
    ({ evidence }) => evidence.sunk.pop(),
    ['mail out: out1 was accepted and has not reached bob@example.net'],
  ],
  'a sent message does not arrive at the other inbox': [
    ({ evidence }) => evidence.inboxes[PEER]!.pop(),
    ['mail out: out1 was accepted and is not in peer@mail.test'],
  ],
  'a sent message arrives twice at the other inbox': [
    ({ evidence }) =>
      evidence.inboxes[PEER]!.push({
        messageId: '<s1.2@mail.test>',
        subject: 'out1',
        labels: ['received'],
      }),
    [
      'mail out: out1 is 2 times in peer@mail.test',
      'events: message.received of <s1.2@mail.test> was heard 0 times',
    ],
  ],
  'a message is sent under two Message-IDs': [
    ({ evidence }) => evidence.sunk.push({ ...evidence.sunk[0]!, messageId: '<s2@mail.test>' }),
    ['mail out: out1 was sent under 2 Message-IDs'],
  ],
  'a message is sent under another Message-ID': [
    ({ evidence }) => {
      evidence.sunk[0]!.messageId = '<s2@mail.test>'
    },
    ['mail out: out1 was answered with <s1@mail.test> and sent as <s2@mail.test>'],
  ],
  'a message is sent with two contents': [
    ({ evidence }) => {
      evidence.sunk.push({ ...evidence.sunk[0]!, contentHash: 'd', beganMs: 200 })
      evidence.mailFaults.killedMs = [150]
    },
    ['mail out: out1 was sent with 2 contents'],
  ],
  'a key is answered with two Message-IDs': [
    ({ ledger }) => ledger.mailsOut[0]!.messageIds.push('<s2@mail.test>'),
    ['mail out: the key of out1 was answered with 2 Message-IDs'],
  ],
  'a send is refused': [
    ({ ledger }) =>
      Object.assign(ledger.mailsOut[0]!, { told: 'refused', refusal: '409', messageIds: [] }),
    ['mail out: out1 was refused: 409'],
  ],
  'a sent message has another status': [
    ({ evidence }) => {
      evidence.deliveryStatus['<s1@mail.test>'] = 'failed'
    },
    ['mail out: out1 has the status failed, not sent'],
  ],
  'a payment has ok: true and no money moved': [
    ({ evidence }) => {
      evidence.used.shift()
      evidence.transferCount = 0
    },
    ['money: 0x01 has ok: true and no money moved'],
  ],
  'a payment moved money and has no ok: true': [
    ({ ledger }) => {
      ledger.payments[0]!.answers.shift()
    },
    ['money: 0x01 was paid and has no ok: true (accepted, last: duplicate_settlement)'],
  ],
  'a payment is made twice': [
    ({ evidence }) => {
      evidence.used.push({ ...evidence.used[0]!, txHash: '0xt2' })
      evidence.transferCount = 2
    },
    ['money: 0x01 was paid 2 times'],
  ],
  'a purchase is paid twice': [
    ({ evidence }) => {
      evidence.used.push({ ...evidence.used[1]!, txHash: '0xb3' })
      evidence.purse.paidAtomic = '20000'
    },
    [
      'purse: pur_1 was paid 2 times',
      'purse: spent is 10000 in the mandate, and 20000 by the chain',
    ],
  ],
  'an authorization of the purse is used without a purchase': [
    ({ evidence }) => {
      evidence.used.push({ ...evidence.used[1]!, nonce: '0xb9' })
    },
    ['purse: 0xb9 was used, and no purchase has it'],
  ],
  'a released purchase is paid': [
    ({ evidence }) => {
      evidence.used.push({ ...evidence.used[1]!, nonce: '0xb3' })
    },
    ['purse: pur_3 was paid and is released'],
  ],
  'a purchase is spent and no money moved': [
    ({ evidence }) => {
      evidence.used.pop()
    },
    ['purse: pur_1 is spent and no money moved'],
  ],
  'the limit of a mandate is exceeded': [
    ({ evidence }) => {
      evidence.purse.mandate.limit = '19999'
    },
    ['purse: 10000 spent and 10000 open pass the limit 19999'],
  ],
  'a reservation is lost': [
    ({ evidence }) => {
      evidence.purse.mandate.reserved = '20000'
    },
    ['purse: open is 0 in the mandate, and 10000 by the purchases'],
  ],
  'one key buys twice': [
    ({ ledger, evidence }) => {
      ledger.purchases[0]!.purchaseIds.push('pur_2')
      evidence.purse.purchases[1]!.key = 'buy-1'
    },
    ['purse: buy-1 was answered with 2 purchases', 'purse: buy-1 has 2 purchases'],
  ],
  'a purchase has no end': [
    ({ evidence }) => {
      evidence.purse.purchases[1]!.ended = false
    },
    ['purse: pur_2 has no end'],
  ],
  'a payment is granted under two keys': [
    ({ ledger }) => {
      ledger.payments[0]!.answers[1]!.ok = true
    },
    ['money: 0x01 was granted under 2 keys'],
  ],
  'a payment has two grants': [
    ({ ledger }) =>
      ledger.payments[0]!.answers.push({ ...ledger.payments[0]!.answers[0]!, paymentId: 'pay_2' }),
    ['money: 0x01 has 2 different grants'],
  ],
  'a payment has two records': [
    ({ evidence }) =>
      evidence.payments.push({ id: 'pay_2', nonce: '0x01', status: 'failed', txHash: null }),
    ['money: 0x01 has 2 payment records'],
  ],
  'another amount moves': [
    ({ evidence }) => {
      evidence.used[0]!.amountAtomic = '1'
    },
    ['money: 0x01 moved 1, not 10000'],
  ],
  'a grant names another transaction': [
    ({ evidence }) => {
      evidence.used[0]!.txHash = '0xt9'
    },
    ['money: 0x01 was granted for 0xt1 and settled by 0xt9'],
  ],
  'a granted payment is recorded as failed': [
    ({ evidence }) => {
      evidence.payments[0]!.status = 'failed'
    },
    [
      'money: 0x01 has ok: true and the record is failed',
      'webhooks: payment.received pay_1 came and never happened',
    ],
  ],
  'a payer is refused because of trouble in the service': [
    ({ ledger }) =>
      ledger.payments.push({
        ...paid(),
        nonce: '0x02',
        told: 'refused',
        answers: [
          {
            key: 'redeem-2',
            ok: false,
            reason: 'unexpected_settle_error',
            paymentId: null,
            txHash: null,
          },
        ],
      }),
    ['money: 0x02 was refused: unexpected_settle_error'],
  ],
  'an authorization is used that no client signed': [
    ({ evidence }) => {
      evidence.used.push({ nonce: '0x03', payer: '0xaa', txHash: '0xt3', amountAtomic: '1' })
      evidence.transferCount = 2
    },
    ['money: 0x03 was used and no client signed it'],
  ],
  'a transfer has no authorization': [
    ({ evidence }) => {
      evidence.transferCount = 2
    },
    ['money: 2 transfers for 1 used authorizations'],
  ],
  'a payment has no end': [
    ({ ledger, evidence }) => {
      ledger.payments.push({ ...paid(), nonce: '0x04', told: 'unknown', answers: [] })
      evidence.payments.push({ id: 'pay_4', nonce: '0x04', status: 'verified', txHash: null })
    },
    ['money: payment pay_4 is neither settled nor failed'],
  ],
  'the vault holds an overwritten value in the end': [
    ({ evidence }) => {
      evidence.vault.v = '1'
    },
    ['vault: v is in the end 1, which was overwritten or never written'],
  ],
  'the vault lost a value': [
    ({ evidence }) => {
      evidence.vault.v = null
    },
    ['vault: v is in the end absent, which was overwritten or never written'],
  ],
  'the vault answers a value that was never written': [
    ({ evidence }) => {
      evidence.vault.v = '9'
    },
    ['vault: v is in the end 9, which was overwritten or never written'],
  ],
  'a read of the vault is stale': [
    ({ ledger }) => ledger.vault[0]!.reads.push({ value: '1', startMs: 250, endMs: 260 }),
    ['vault: v was 1, which was overwritten or never written'],
  ],
  'a write whose answer was lost takes effect too late': [
    ({ ledger, evidence }) => {
      ledger.vault[0]!.writes = [
        { ...put('0', 0), told: 'unknown' },
        put('2', LATE_WRITE_MS + 1_000),
      ]
      ledger.vault[0]!.reads = []
      evidence.vault.v = '0'
    },
    ['vault: v is in the end 0, which was overwritten or never written'],
  ],
  'a write to the vault is refused': [
    ({ ledger }) => ledger.vault[0]!.writes.push({ ...put('3', 400), told: 'refused' }),
    ['vault: a write to v was refused'],
  ],
  'a webhook has a wrong signature': [
    ({ evidence }) => {
      evidence.delivered[0]!.genuine = false
    },
    ['webhooks: whd_payment.received_pay_1 came with a wrong signature'],
  ],
  'a webhook repeats with another body': [
    ({ evidence }) => evidence.delivered.push({ ...evidence.delivered[0]!, bodyHash: 'x' }),
    ['webhooks: whd_payment.received_pay_1 came with 2 bodies'],
  ],
  'a webhook never comes': [
    ({ evidence }) => evidence.delivered.shift(),
    ['webhooks: payment.received pay_1 never came'],
  ],
  'a webhook comes under two keys': [
    ({ evidence }) =>
      evidence.delivered.push({ ...evidence.delivered[1]!, idempotencyKey: 'whd_other' }),
    ['webhooks: message.received <in1@example.com> came under 2 keys'],
  ],
  'the receiver never answers a webhook with 200': [
    ({ evidence }) => {
      evidence.delivered[2]!.status = 500
    },
    ['webhooks: message.sent <s1@mail.test> was never taken'],
  ],
  'a webhook announces a payment that never happened': [
    ({ evidence }) =>
      evidence.delivered.push(delivery(PATHS.payments, 'payment.received', 'pay_7')),
    ['webhooks: payment.received pay_7 came and never happened'],
  ],
  'a listener misses an event between two events': [
    (run) => {
      events(run)[1]!.id = '3'
      events(run)[2]!.id = '4'
      run.evidence.newestEvent[INBOX] = 4
    },
    ['events: agent@mail.test heard 3 where 2 was next'],
  ],
  'a listener hears an event twice': [
    (run) => events(run).splice(1, 0, { id: '1', type: 'message.received', subjectId: null }),
    [
      'webhooks: message.received null never came',
      'events: agent@mail.test heard 1 where 2 was next',
    ],
  ],
  'a listener misses the last event': [
    ({ evidence }) => {
      evidence.newestEvent[INBOX] = 4
    },
    ['events: agent@mail.test heard up to 3 of 4'],
  ],
  'the stream tells of a gap': [
    ({ ledger }) =>
      ledger.listeners[1]!.heard.push({ id: '1', type: 'stream.gap', subjectId: null }),
    ['events: peer@mail.test was told of a gap'],
  ],
  'a message has no event': [
    ({ evidence }) =>
      evidence.inboxes[PEER]!.push({ messageId: '<x@e>', subject: 'x', labels: ['received'] }),
    ['events: message.received of <x@e> was heard 0 times'],
  ],
  'a sent message has two events': [
    (run) => {
      const { type, subjectId } = events(run)[1]!
      events(run).push({ id: '4', type, subjectId })
      run.evidence.newestEvent[INBOX] = 4
    },
    ['events: message.sent of out1 was heard 2 times'],
  ],
  'an event tells of a failed message': [
    (run) => {
      events(run).push({ id: '4', type: 'message.failed', subjectId: '<y@e>' })
      run.evidence.newestEvent[INBOX] = 4
      run.evidence.delivered.push(delivery(PATHS.events, 'message.failed', '<y@e>'))
    },
    ['events: message.failed of <y@e>'],
  ],
  'a client gets a forbidden answer': [
    ({ ledger }) => ledger.surprises.push('the challenge was refused: 400'),
    ['clients: the challenge was refused: 400'],
  ],
  'a job stays locked': [
    ({ evidence }) => {
      evidence.jobs = ['send_mail 1']
      evidence.lockedJobs = ['send_mail 1']
    },
    ['queue: send_mail 1 is locked'],
  ],
  'a job stays in the queue': [
    ({ evidence }) => {
      evidence.jobs = ['send_mail 1']
    },
    ['queue: send_mail 1 is left'],
  ],
  'a row waits without a job': [
    ({ evidence }) => {
      evidence.openRows = [{ row: 'inbound mail 1', hasJob: false }]
    },
    ['queue: inbound mail 1 waits without a job'],
  ],
  'a row is not done': [
    ({ evidence }) => {
      evidence.openRows = [{ row: 'inbound mail 1', hasJob: true }]
    },
    ['queue: inbound mail 1 is not done'],
  ],
}

for (const [name, [breakRule, findings]] of Object.entries(BROKEN)) {
  test(`the auditor of the chaos test reports a contradiction if ${name}`, () => {
    const run = faultlessRun()
    breakRule(run)
    expect(audit(run.ledger, run.evidence)).toEqual(findings)
  })
}
