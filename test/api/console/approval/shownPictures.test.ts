/** Tests that an owner cannot approve a mail whose pictures the approval page does not draw. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { approvalLink, heldAgent, requestOf } from '../../../support/mail/held.ts'
import { sendMail } from '../../../support/mail/outbound.ts'
import { type Sink, startSink } from '../../../support/mail/sink.ts'
import { type Agent, startTestService, type TestService } from '../../../support/service.ts'

let sink: Sink
let service: TestService
let agent: Agent
beforeAll(async () => {
  sink = await startSink()
  service = await startTestService({ smtp: false, env: { SMTP_RELAY_URL: sink.url } })
  agent = await heldAgent(service, {
    sendPolicy: 'approve',
    approverEmail: 'owner@elsewhere.example',
  })
})
afterAll(async () => {
  await service[Symbol.asyncDispose]()
  await sink[Symbol.asyncDispose]()
})

const PICTURE = Buffer.from('a picture').toString('base64')
const letter = (html: string, attachment: object = {}) => ({
  ...{ to: ['ada@example.com'], subject: 'Invoice', text: 'See it', html: `<p>See it</p>${html}` },
  attachments: [
    {
      filename: 'a.png',
      contentType: 'image/png',
      content: PICTURE,
      contentId: 'x',
      ...attachment,
    },
  ],
})

/** Sends a mail, and tells whether the approval page draws its picture and offers the approval. */
async function seen(html: string, attachment: object = {}) {
  const { messageId } = await sendMail(agent, letter(html, attachment))
  const { approvalId } = await requestOf(service, agent, messageId)
  const link = await approvalLink(service, sink, approvalId)
  const frame = await (await fetch(`${link}?view=html`)).text()
  const page = await (await fetch(link)).text()
  return { isDrawn: frame.includes(PICTURE), isOffered: page.includes('value="approve"') }
}

test('the approval page draws a picture in a mail whenever it lets the owner approve this mail', async () => {
  for (const contentType of ['image/png', 'image/jpg', 'IMAGE/WebP'])
    expect([contentType, await seen('<img src=" cid:x">', { contentType })]).toEqual([
      contentType,
      { isDrawn: true, isOffered: true },
    ])
  for (const contentType of ['image/png; name=x', 'image/svg+xml'])
    expect([contentType, await seen('<img src="cid:x">', { contentType })]).toEqual([
      contentType,
      { isDrawn: false, isOffered: false },
    ])
})

test('the owner cannot approve a mail with a form button that is a picture, because the page does not draw this picture', async () => {
  expect(await seen('<input type="image" src="cid:x">')).toEqual({
    isDrawn: false,
    isOffered: false,
  })
})

test('an attachment is refused if its Content-ID contains an encoding that a mail program could decode to another text', async () => {
  for (const contentId of ['a&#98;', 'a%62', '=?utf-8?Q?a?=']) {
    const mail = letter('', { contentId })
    const { status, body } = await agent.post('/v0/messages/send', mail)
    expect([status, body.message]).toEqual([
      400,
      'attachments[0].contentId must be 1 to 255 visible ASCII characters without & # ; %, such as logo',
    ])
  }
})
