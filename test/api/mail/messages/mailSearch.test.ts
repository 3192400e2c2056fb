import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { highlight, parseSearch } from '../../../../shared/mail/search/searchQuery.ts'
import { searchKey } from '../../../../shared/mail/search/searchTerms.ts'
import { buildSegments } from '../../../../sql/mail/search/buildSegments.ts'
import { testWhole } from '../../../support/database/extent.ts'
import {
  type Agent,
  startTestService,
  type TestService,
  waitForMessages,
} from '../../../support/service.ts'
import { waitFor } from '../../../support/waitFor.ts'

let service: TestService
let agent: Agent
beforeAll(async () => {
  service = await startTestService()
  agent = await service.newAgent()
  for (const [n, [from, subject, text, filename]] of MAILS.entries()) {
    await service.deliver({
      from,
      to: agent.address,
      subject,
      text,
      messageId: `<${n}@example.com>`,
      ...(filename === undefined ? {} : { attachments: [{ filename, content: 'x' }] }),
    })
    await waitForMessages(agent, n + 1)
  }
})
afterAll(() => service[Symbol.asyncDispose]())

/** Lists the sender, subject, text and attachment of each test mail. */
const MAILS: [string, string, string, string?][] = [
  ['ada@example.com', 'Second reminder', 'Your invoice no. 4711 is due.', 'Rechnung-März.pdf'],
  ['bob@example.org', 'Réunion à Zürich', 'Le café ouvre à 9 h; Straße gesperrt.'],
  ['carl@shop.example.com', '東京の天気', '明日は晴れるでしょう。会議は東京タワーで。'],
  ['dana@example.com', 'Reminder, the second', 'No invoice here, only a draft.'],
  ['emil@example.net', 'Привет', 'Счёт за июль оплачен. नमस्ते दुनिया สวัสดีชาวโลก'],
  ['ada@example.com', "O'Brien's \\ note", 'a:b & c | d ! (e) <-> \'quoted\' "double" *'],
]

async function find(query: Record<string, string>, who: Agent = agent): Promise<string[]> {
  const { status, body } = await who.get(`/v0/messages?${new URLSearchParams(query)}`)
  expect([query, status, body.message]).toEqual([query, 200, undefined])
  return body.messages.map((message: any) => message.messageId.slice(1, 2)).toSorted()
}

describe('a search with the parameter q finds the messages that contain the searched words', () => {
  const cases: [what: string, q: string, found: string][] = [
    ['a word of the text', 'invoice', '03'],
    ['whatever its case and accents', 'CAFÉ', '1'],
    ['also the other way round', 'reunion zurich', '1'],
    ['ß by ss', 'strasse', '1'],
    ['all words, in any order', 'reminder second', '03'],
    ['a phrase', '"second reminder"', '0'],
    ['without a word', 'invoice -draft', '0'],
    ['without a phrase', 'reminder -"the second"', '0'],
    ['one or another', 'café OR draft', '13'],
    ['the beginning of a word', 'remin*', '03'],
    ['a number', '4711', '0'],
    ['a file name', 'rechnung', '0'],
    ['an address', 'carl@shop.example.com', '2'],
    ['a domain', 'shop.example.com', '2'],
    ['Japanese, inside a run of letters', '東京', '2'],
    ['Japanese, a longer run', '東京タワー', '2'],
    ['one letter of Japanese', '晴', '2'],
    ['Russian', 'счет', '4'],
    ['Hindi', 'नमस्ते', '4'],
    ['Thai, inside a run of letters', 'ชาวโลก', '4'],
    ['no word of another language for a part of it', 'drafts', ''],
    ['nothing', 'nowhere', ''],
    ['operators of the database as what they are', "O'Brien's", '5'],
    ['a query made of signs and a word', "a:b & ' \\ ( c", '5'],
    ['an unclosed phrase', '"second reminder', '0'],
  ]
  for (const [what, q, found] of cases) {
    test(what, async () => expect(await find({ q })).toEqual([...found]))
  }
})

describe('search filters restrict the messages that a search finds', () => {
  const cases: [Record<string, string>, string][] = [
    [{ from: 'ada@example.com' }, '05'],
    [{ from: 'example.com' }, '0235'],
    [{ from: 'invoice' }, ''],
    [{ subject: 'reminder' }, '03'],
    [{ subject: 'second reminder' }, '0'],
    [{ subject: 'invoice' }, ''],
    [{ from: 'ada@example.com', q: 'reminder' }, '0'],
    [{ to: 'nobody@example.com' }, ''],
    [{ q: 'reminder', labels: 'read' }, ''],
    [{ q: 'reminder', labels: 'unread,received' }, '03'],
    [{ q: 'reminder', before: '2001-01-01' }, ''],
    [{ q: 'reminder', after: '2001-01-01T00:00:00Z' }, '03'],
    [{ after: '2001-01-01', before: '2099-12-31T23:59:59.999+02:00' }, '012345'],
  ]
  for (const [query, found] of cases) {
    test(JSON.stringify(query), async () => expect(await find(query)).toEqual([...found]))
  }

  test('the filter after includes a message of exactly the given time, and the filter before excludes it', async () => {
    const [newest] = (await agent.get('/v0/messages?limit=1')).body.messages
    expect(await find({ after: newest.createdAt })).toContain('5')
    expect(await find({ before: newest.createdAt })).not.toContain('5')
  })

  test('a search finds sent mail by text and recipients, including Bcc', async () => {
    const sender = await service.newAgent()
    await sender.post('/v0/messages/send', {
      to: ['zoe@example.com'],
      bcc: ['quiet@example.com'],
      subject: 'Outgoing',
      text: 'Zebra crossing',
    })
    for (const query of [{ q: 'zebra' }, { to: 'zoe@example.com' }, { to: 'quiet' }]) {
      expect(await find(query as Record<string, string>, sender)).toHaveLength(1)
    }
    // A search in another project finds nothing.
    expect(await find({ q: 'zebra' })).toEqual([])
    expect(await find({ q: 'invoice' }, sender)).toEqual([])
  })
})

test('in a mail with very many recipients, a search for any recipient’s full address finds the mail', async () => {
  const crowded = await service.newAgent()
  const to = Array.from({ length: 400 }, (_, n) => `user${n}@example.com`)
  await service.deliver({
    from: 'ada@example.com',
    envelope: { from: 'ada@example.com', to: crowded.address },
    to,
    subject: 'All of you',
    text: 'Hello.',
    messageId: '<1@example.com>',
  })
  await waitForMessages(crowded, 1)
  for (const address of ['user0@example.com', 'user399@example.com', 'User399@EXAMPLE.com']) {
    expect([address, await find({ to: address }, crowded)]).toEqual([address, ['1']])
    expect([address, await find({ q: address }, crowded)]).toEqual([address, ['1']])
    expect([address, await find({ q: `hello -${address}` }, crowded)]).toEqual([address, []])
    expect([address, await find({ from: address }, crowded)]).toEqual([address, []])
  }
  expect(await find({ to: 'user400@example.com' }, crowded)).toEqual([])
})

test('search results contain highlights of the matches', async () => {
  const { body } = await agent.get(`/v0/messages?q=${encodeURIComponent('reminder 東京 OR due')}`)
  expect(body.messages).toHaveLength(1)
  const { highlights } = body.messages[0]
  const marked = (pieces: any[]) =>
    pieces.flatMap(({ text, ranges }) =>
      ranges.map(([from, to]: [number, number]) => text.slice(from, to)),
    )
  expect(marked(highlights.subject)).toEqual(['reminder'])
  expect(marked(highlights.text)).toEqual(['due'])
  expect('highlights' in (await agent.get('/v0/messages')).body.messages[0]).toBe(false)
})

test('two search matches that stand close together appear in one common highlight', () => {
  const parsed = parseSearch('needle')
  const of = (gap: number) => highlight(`needle ${'x'.repeat(gap - 2)} needle`, parsed, 'text')
  expect(of(60)).toHaveLength(1)
  expect(of(61)).toHaveLength(2)
})

testWhole(
  'the pages of search results hold each message once and in order, even for common words',
  async () => {
    const many = await service.newAgent()
    const { pool } = service.database
    await many.post('/v0/messages/send', {
      to: ['a@example.com'],
      subject: 's',
      text: 'common hundredth fiftieth past',
    })
    // The query adds 70,000 messages to the inbox. Some of the searched words occur only in a few of them, and one word
    // only in old messages.
    const key = searchKey(many.project.id)
    await pool.query(
      `insert into messages (project_id, thread_row, direction, message_id, message_id_hash, subject, text_body, labels,
                           created_at, search)
     select project_id, thread_row, direction, '<' || n || '@x.test>', sha256(n::text::bytea), subject, text_body, labels,
            date_trunc('second', created_at) - (n / 3) * interval '1 second',
            ts_delete(search, array_remove(array[
              case when n % 100 > 0 or n > 50000 then $2 || ':hundredth' end,
              case when n % 50 > 0 then $2 || ':fiftieth' end,
              case when n < 68000 then $2 || ':past' end], null))
     from messages, generate_series(1, 70000) n where project_id = $1`,
      [many.project.id, key],
    )
    // Without the segments of the search index, a search over so many messages would exceed its time limit on a busy
    // database.
    while ((await buildSegments(pool, many.project.id)) !== null);
    for (const [q, total, pages] of [
      ['common', 1_000, 10],
      ['hundredth', 501, 100],
      ['fiftieth', 1_401, 100],
      ['past', 2_002, 100],
    ] as const) {
      const seen: string[] = []
      let token = ''
      let page = 0
      do {
        const { body } = await many.get(`/v0/messages?q=${q}&limit=100${token}`)
        seen.push(
          ...body.messages.map((message: any) => `${message.createdAt} ${message.messageId}`),
        )
        token = body.nextPageToken === undefined ? '' : `&pageToken=${body.nextPageToken}`
      } while (token !== '' && ++page < pages)
      expect([q, seen.length, new Set(seen).size]).toEqual([q, total, total])
      const times = seen.map((one) => one.split(' ')[0])
      expect(times).toEqual(times.toSorted().reverse())
    }
  },
)

test('a maintenance job adds messages to the search index that were stored before the index existed', async () => {
  const { pool } = service.database
  const older = await service.newAgent()
  await older.post('/v0/messages/send', {
    to: ['a@example.com'],
    subject: 'Elder',
    text: 'Ancient',
  })
  await pool.query('update messages set search = null where project_id = $1', [older.project.id])
  const { startMaintenance } = await import('../../../../workers/operations/maintenance.ts')
  const { silentLog } = await import('../../../support/logs.ts')
  const maintenance = startMaintenance(service.database.url, service.config.retention, silentLog)
  await waitFor('the index', async () => (await find({ q: 'ancient' }, older)).length === 1)
  await maintenance.stop()
})

test('an invalid search query gets status 400 with an error text that names the reason', async () => {
  for (const [query, message] of [
    ['q=', 'q must hold at least one word to look for'],
    ['q=%2B%2B%2B', 'q must hold at least one word to look for'],
    ['q=-only', 'q must hold at least one word to look for'],
    [`q=${'a%20'.repeat(65)}`, 'q must hold at most 64 words'],
    [`q=${'a'.repeat(501)}`, 'q must be a string of at most 500 characters'],
    ['q=invoice%20ab*', 'q must have at least 3 letters before *'],
    [`q=${'abc*%20'.repeat(9)}`, 'q must hold at most 8 beginnings of words'],
    ['from=%40', 'from must hold at least one letter or digit'],
    ['after=yesterday', 'after must be an ISO 8601 time such as 2026-01-31T09:30:00Z, or a date'],
    [
      'before=2026-13-01',
      'before must be an ISO 8601 time such as 2026-01-31T09:30:00Z, or a date',
    ],
  ]) {
    const { status, body } = await agent.get(`/v0/messages?${query}`)
    expect([query, status, body.message]).toEqual([query, 400, message])
  }
})
