/**
 * Tests that a reviewer who cannot see the whole mail cannot approve the mail. The agent in these tests attacks the
 * approval page and the console.
 */
import { afterAll, beforeAll, describe, expect, setSystemTime, test } from 'bun:test'
import type { Browser } from 'playwright-core'
import { hasBrowser, openConsole, startBrowser } from '../../../support/console/browser.ts'
import { calendarFile } from '../../../support/mail/calendar/invitations.ts'
import {
  approvalLink,
  decideByLink,
  heldAgent,
  heldPath,
  readApprovalPages,
  requestOf,
} from '../../../support/mail/held.ts'
import { sendMail, untilStatus } from '../../../support/mail/outbound.ts'
import { type Sink, startSink } from '../../../support/mail/sink.ts'
import { type Agent, startTestService, type TestService } from '../../../support/service.ts'
import '../../../support/long.ts'

const OWNER = 'owner@elsewhere.example'
const SECRET = 'transfer 9000 to mallory'

let sink: Sink
let service: TestService
let browser: Browser
let agent: Agent
beforeAll(async () => {
  sink = await startSink()
  service = await startTestService({ smtp: false, env: { SMTP_RELAY_URL: sink.url } })
  agent = await heldAgent(service, { sendPolicy: 'approve', approverEmail: OWNER })
  if (hasBrowser) browser = await startBrowser()
})
afterAll(async () => {
  await browser?.close()
  await service[Symbol.asyncDispose]()
  await sink[Symbol.asyncDispose]()
})

async function held(letter: Record<string, unknown>) {
  const { messageId } = await sendMail(agent, { to: ['ada@example.com'], ...letter })
  const { approvalId, sha256 } = await requestOf(service, agent, messageId)
  const link = await approvalLink(service, sink, approvalId)
  return { messageId, approvalId, sha256: sha256 as string, link }
}

const decideBy = (link: string, fields: Record<string, string>) =>
  decideByLink(link, { decision: 'approve', ...fields })

const plain = (html: string) =>
  html
    .replace(/<[^>]*>/g, '')
    .replaceAll('&lt;', '<')
    .replaceAll('&gt;', '>')
    .replaceAll('&quot;', '"')
    .replaceAll('&#39;', "'")
    .replaceAll('&amp;', '&')

const textOf = async (path: string) => (await fetch(path)).text()

/**
 * Reads the approval pages of a mail from the first page to the last page, as a person does.
 * @returns the text of all pages, and for each page a boolean that tells whether the page offers the button to approve
 * the mail.
 */
async function readAll(link: string) {
  const { pages, seen } = await readApprovalPages(link)
  const canApprove = pages.map((html) => html.includes('value="approve"'))
  return { text: plain(pages.join('')), pages, canApprove, seen }
}

const stateOf = async (approvalId: string) =>
  (await service.platform.get(heldPath(agent, approvalId))).body.state

const HIDING: Record<string, string> = {
  'a comment of 190,000 characters': `<p>Hello</p><!--${'x'.repeat(190_000)}--><p>${SECRET}</p>`,
  'a comment that ends as --!>': `<p>Hello</p><!-- a --!><p>${SECRET}</p><!-- -->`,
  'a comment itself': `<p>Hello</p><!-- ${SECRET} -->`,
  'the content of a style': `<style>p::after{content:"${SECRET}"}</style><p>Hello</p>`,
  'white text': `<p>Hello</p><p style="color:#fff">${SECRET}</p>`,
  'an attribute': `<p>Hello</p><p title="${SECRET}">you</p>`,
  'thousands of empty lines': `<p>Hello</p>${'<br>\n'.repeat(20_000)}<p>${SECRET}</p>`,
}

for (const [name, html] of Object.entries(HIDING)) {
  test(`the approval pages show words that are hidden behind ${name}, and the owner can approve the mail only after reading all pages`, async () => {
    const mail = { subject: name, text: 'Hello', html }
    const { link, sha256, approvalId, messageId } = await held(mail)
    const early = await decideBy(link, { sha256 })
    expect([early.status, (await early.text()).includes('Read all pages first')]).toEqual([
      409,
      true,
    ])
    expect(await stateOf(approvalId)).toBe('waiting')
    const { text, canApprove, pages, seen } = await readAll(link)
    expect(text).toContain(SECRET)
    expect(canApprove.indexOf(true)).toBe(pages.length - 1)
    expect((await decideBy(link, { sha256, seen })).status).toBe(200)
    await untilStatus(agent, messageId, 'sent')
  })
}

const UNSHOWABLE: Record<string, string> = {
  'a remote picture': '<img src="https://example.com/a.png">',
  'a remote picture behind --!>': '<!-- --!><img src=//example.com/a.png><!-- -->',
  'a picture without blanks': '<img/src="https://example.com/a.png">',
  'a picture with entities': '<img src="&#104;ttps://example.com/a.png">',
  'a set of pictures': '<img srcset="https://example.com/a.png 1x">',
  'a background of an element': '<table background="https://example.com/a.png"><tr><td>x</table>',
  'a background of a style': '<p style="background:url(https://example.com/a.png)">x</p>',
  'a background with escapes': String.raw`<p style="background:\75 rl(https://example.com/a)">x</p>`,
  'a background with entities': '<p style="background&colon;url&lpar;https://example.com/a)">x</p>',
  'a sheet of another host': '<style>@import "https://example.com/a.css";</style>',
  'a picture that the mail lacks': '<img src="cid:absent">',
  'words for small screens': '<style>@media (max-width:400px){p{display:none}}</style><p>x</p>',
  'words for one program': `<!--[if mso]>${SECRET}<![endif]-->`,
  'words that appear later': '<style>p{animation: a 9s}@keyframes a{}</style><p>x</p>',
  'a script': '<script>document.write(1)</script>',
  'a drawing': '<svg><text>x</text></svg>',
  'a form': '<form action="https://example.com"><input></form>',
  'more than the page reads': `<p>Hello</p>${'x '.repeat(150_000)}<p>${SECRET}</p>`,
}

for (const [name, html] of Object.entries(UNSHOWABLE)) {
  test(`if the HTML part of a mail has ${name}, an owner can reject this mail by its approval link, but cannot approve it`, async () => {
    const mail = { subject: name, text: 'x', html }
    const { link, sha256, approvalId, messageId } = await held(mail)
    const { text, canApprove, seen } = await readAll(link)
    expect(canApprove).not.toContain(true)
    expect(text).toContain('cannot be approved here')
    expect((await decideBy(link, { sha256, seen })).status).toBe(409)
    expect(await stateOf(approvalId)).toBe('waiting')
    await decideBy(link, { decision: 'reject', sha256 })
    await untilStatus(agent, messageId, 'rejected')
  })
}

test('an approval link does not approve a mail with a hidden part, even if the API’s clock is ahead and the link seems expired', async () => {
  const html = UNSHOWABLE['a form']!
  const { link, sha256, approvalId } = await held({ subject: 'early', text: 'x', html })
  const { expiresAt } = (await service.platform.get(heldPath(agent, approvalId))).body
  setSystemTime(new Date(Date.parse(expiresAt) + 1_000))
  try {
    await decideBy(link, { sha256 })
  } finally {
    setSystemTime()
  }
  expect(await stateOf(approvalId)).toBe('waiting')
})

test('the approval page shows a picture inside a mail that waits for approval, and the owner can still approve the mail', async () => {
  const { link, sha256 } = await held({
    subject: 'picture',
    text: 'See',
    html: '<p>See <a href="https://example.com">here</a> <img src="cid:logo" alt=""></p>',
    attachments: [
      { filename: 'logo.png', contentType: 'image/png', content: btoa('x'), contentId: 'logo' },
    ],
  })
  const { text, canApprove, seen } = await readAll(link)
  expect([canApprove, text.includes('logo.png – image/png')]).toEqual([[true], true])
  expect(await textOf(`${link}?view=html`)).toContain('data:image/png;base64')
  expect((await decideBy(link, { sha256, seen })).status).toBe(200)
})

test('a long mail that waits for approval is split into approval pages, and a page opens only with the token of the previous page', async () => {
  const long = Array.from({ length: 30_000 }, (_, n) => `line ${n}`).join('\n')
  const { link, sha256, messageId } = await held({ subject: 's', text: `${long}\n${SECRET}` })
  const first = await textOf(link)
  expect([first.includes('value="approve"'), plain(first).includes(SECRET)]).toEqual([false, false])
  const [, seal] = /name="seen" value="([\w-]+)"/.exec(first)!
  for (const path of ['?page=99', '?page=2', '?page=7&seen=wrong', `?page=3&seen=${seal}`]) {
    expect(await textOf(link + path)).toContain('Page 1 of')
  }
  expect((await decideBy(link, { sha256, seen: seal! })).status).toBe(409)
  const { text, pages, seen } = await readAll(link)
  expect(pages.length).toBeGreaterThan(4)
  for (const line of ['line 0\n', 'line 15000\n', 'line 29999\n', SECRET]) {
    expect(text).toContain(line)
  }
  // Each page has a seal, which proves that the person has read the page. The seal is valid only for the bytes of this
  // mail, so the seal of another mail is refused.
  const other = await held({ subject: 'other', text: 'x' })
  expect((await decideBy(other.link, { sha256: other.sha256, seen })).status).toBe(409)
  expect((await decideBy(link, { sha256, seen })).status).toBe(200)
  await untilStatus(agent, messageId, 'sent')
})

test('a mail with a body of more than one megabyte cannot be approved by its approval link, but can be approved with a platform key', async () => {
  const text = `${'word '.repeat(350_000)}${SECRET}`
  const { link, sha256, approvalId, messageId } = await held({ subject: 'huge', text })
  const shown = await readAll(link)
  expect(shown.canApprove).toEqual([false])
  expect(shown.text).toContain('the mail is longer than')
  const path = `${heldPath(agent, approvalId)}/approve`
  expect((await service.platform.post(path, { sha256 })).status).toBe(200)
  await untilStatus(agent, messageId, 'sent')
})

test('the approval page shows every field, recipient, attachment and invisible character of a mail that waits for approval', async () => {
  const { link } = await held({
    to: ['Ada Lovelace <ada@example.com>'],
    cc: ['bob@example.com'],
    bcc: ['eve@example.com'],
    subject: 'Grüße',
    text: `pay \u202eoperative\u202c now\u200b${'\n'.repeat(5_000)}${SECRET}`,
    headers: { 'X-Order': 'forty-two' },
    unsubscribe: { url: 'https://example.com/u' },
    attachments: [{ filename: 'bill.pdf', contentType: 'application/pdf', content: btoa('hello') }],
  })
  const { text } = await readAll(link)
  for (const shown of [
    'Ada Lovelace <ada@example.com>',
    'bob@example.com',
    'Bcc: eve@example.com',
    'Subject: Grüße',
    'X-Order: forty-two',
    'https://example.com/u',
    'bill.pdf – application/pdf, 5 bytes',
    '⟨U+202E⟩operative',
    '⟨U+200B⟩',
    '⟨4999 empty lines⟩',
  ]) {
    expect(text).toContain(shown)
  }
})

const CALENDAR_FILES = [
  ['a.ics', 'text/calendar; charset=utf-8; method=REQUEST'],
  ['b.txt', 'text/calendar; method=REQUEST; charset=utf-8'],
  ['c.txt', 'Text/Calendar'],
  ['d.txt', 'text/calendar'],
  ['e.txt', 'application/ics'],
  ['f.txt', 'APPLICATION/ICS ;name=f'],
  ['g.ics', 'application/octet-stream'],
  ['h.ICS', 'text/plain'],
  ['i.ics.', 'text/plain'],
  ['j.txt', 'application/octet-stream; name="j.ics"; x=y'],
] as const

for (const [filename, contentType] of CALENDAR_FILES) {
  test(`the approval page shows the text of the calendar file ${filename} with the type ${contentType}`, async () => {
    const file = calendarFile({ lines: ['SUMMARY:<b>Pay & go</b>', `DESCRIPTION:${SECRET}`] })
    const attachments = [{ filename, contentType, content: btoa(file) }]
    const { link } = await held({ subject: filename, text: 'Hello', attachments })
    const { text, pages } = await readAll(link)
    expect(text).toContain(file.replaceAll('\r\n', '\n'))
    expect(pages.join('')).not.toContain('<b>Pay')
  })
}

test('the approval page does not show the text of a file that is no calendar file', async () => {
  const content = btoa('SUMMARY:VCALENDAR')
  const attachments = [
    { filename: 'ics', contentType: 'text/calendars', content },
    { filename: 'a.ics.zip', contentType: 'application/zip', content },
  ]
  const { link } = await held({ subject: 'other files', text: 'Hello', attachments })
  expect((await readAll(link)).text).not.toContain('VCALENDAR')
})

test('the approval page highlights words that occur only in the text part or only in the HTML part of a mail', async () => {
  const { link } = await held({
    subject: 'differs',
    text: 'Please pay 10 euro to Bob',
    html: '<p>Please pay 9000 euro to Mallory</p>',
  })
  const [page] = (await readAll(link)).pages
  for (const [mark, word] of [
    ['not in the text', '9000'],
    ['not in the text', 'Mallory'],
    ['not in the HTML part', '10'],
  ]) {
    expect(page).toContain(`<mark title="${mark}">${word}</mark>`)
  }
})

describe.skipIf(!hasBrowser)('an owner reviews a held mail in a browser', () => {
  test('the approval page shows the HTML part without network access, and only the last page has the Approve button', async () => {
    const html = '<style>p::after{content:" added"}</style><p>Hello</p><!-- --!><i>drawn</i>'
    const mail = { subject: 'Drawn', text: 'word '.repeat(30_000), html }
    const { link, messageId } = await held(mail)
    const context = await browser.newContext()
    const page = await context.newPage()
    const asked: string[] = []
    page.on('request', (request) => asked.push(new URL(request.url()).origin))
    await page.goto(link)
    await page.frameLocator('iframe').getByText('drawn').waitFor()
    const approve = page.getByRole('button', { name: 'Approve and send' })
    for (let next = 2; (await approve.count()) === 0; next++) {
      await page.getByRole('link', { name: `Read page ${next} of` }).click()
      await page.getByText(new RegExp(`^Page ${next} of`)).waitFor()
    }
    await approve.click()
    await page.getByRole('heading', { name: 'Approved' }).waitFor()
    expect(new Set(asked)).toEqual(new Set([service.url]))
    await context.close()
    await untilStatus(agent, messageId, 'sent')
  })

  test('the console shows the Approve button only on the last page of a mail, and the service requires the token of that page', async () => {
    const mail = { subject: 'At the console', text: 'word '.repeat(25_000) }
    const { approvalId, sha256, messageId } = await held(mail)
    await using console = await openConsole(browser, service)
    const { page } = console
    await console.open(`projects/${agent.project.id}/approvals/${approvalId}`)
    await page.getByText('Page 1 of').waitFor()
    const approve = page.getByRole('button', { name: 'Approve', exact: true })
    expect(await approve.count()).toBe(0)
    const path = `/console/api${heldPath(agent, approvalId)}/approve`
    const headers = { 'content-type': 'application/json', 'x-purser-console': '1' }
    const request = { method: 'POST', headers, body: JSON.stringify({ sha256 }) }
    const status = await page.evaluate(
      `fetch(${JSON.stringify(path)}, ${JSON.stringify(request)}).then(({ status }) => status)`,
    )
    expect([status, await stateOf(approvalId)]).toEqual([409, 'waiting'])
    for (let next = 2; (await approve.count()) === 0; next++) {
      await page.getByRole('button', { name: `Read page ${next} of` }).click()
      await page.getByText(new RegExp(`^Page ${next} of`)).waitFor()
    }
    await approve.click()
    await page.getByRole('dialog').getByRole('button', { name: 'Approve' }).click()
    await untilStatus(agent, messageId, 'sent')
  })

  test('if the console cannot show all parts of a mail, it lists the hidden parts and shows no Approve button', async () => {
    const html = '<img src="https://example.com/a.png">'
    const { approvalId } = await held({ subject: 'Far', text: 'x', html })
    await using console = await openConsole(browser, service)
    const { page } = console
    await console.open(`projects/${agent.project.id}/approvals/${approvalId}`)
    await page.getByText('cannot be approved here').waitFor()
    expect(await page.getByRole('button', { name: 'Approve', exact: true }).count()).toBe(0)
    expect(await page.getByRole('button', { name: 'Reject', exact: true }).count()).toBe(1)
  })
})
