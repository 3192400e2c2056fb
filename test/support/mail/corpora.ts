/**
 * Reads mails, replies and conversations that people wrote without having seen the code. The project’s own sets are in
 * test/fixtures. Public sets may be in the folder `../shared/fixtures` beside the project. `npm test` reads the
 * project’s own sets, and the whole suite reads all sets.
 */
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { isWhole } from '../database/extent.ts'

const OWN = join(import.meta.dir, '../../fixtures')
const PUBLIC = join(import.meta.dir, '../../../../shared/fixtures')

/**
 * Describes a set of test mails from one folder. The names of its tests contain the text `name`.
 */
type Corpus<Item, Name = 'own' | 'public'> = { name: Name; items: Item[] }

const corporaOf = <Item>(
  own: string,
  other: string,
  read: (path: string) => Item[],
): Corpus<Item>[] => [
  { name: 'own', items: read(join(OWN, own)) },
  ...(isWhole && existsSync(PUBLIC)
    ? [{ name: 'public' as const, items: read(join(PUBLIC, other)) }]
    : []),
]

/**
 * Returns the paths of the mail files of a corpus of test mails. Each file contains one mail with the bytes that SMTP
 * delivered.
 */
export const mailCorpora = (): Corpus<string>[] =>
  corporaOf('mails', 'eml', (folder) =>
    (readdirSync(folder, { recursive: true }) as string[])
      .map((name) => join(folder, name))
      .filter((path) => statSync(path).isFile() && !path.endsWith('.jsonl'))
      .toSorted(),
  )

/**
 * Describes a test mail with its expected reply text. `alt` holds other accepted reply texts. The tier is `core` if all
 * conventions for quoted text lead to the same reply text.
 */
export type ReplyCase = {
  id: string
  input_kind: 'text' | 'html' | 'eml'
  input: string
  expected: string
  alt?: string[]
  tier: 'core' | 'policy'
  class?: string
}

export function readReplies(path: string): ReplyCase[] {
  const bytes = readFileSync(path)
  const text = (path.endsWith('.gz') ? gunzipSync(bytes) : bytes).toString('utf8')
  return text
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line))
}

/**
 * Returns the sets of test mails that are replies. The set `edges` contains attribution lines that are joined or cut,
 * unlisted devices and odd characters, and for each case similar mails without the case. The tests leave out some
 * replies of the set `sealed a`, which answer between quoted lines. Their author omitted the quoted questions, but
 * docs/contract.md keeps the questions.
 */
export const replyCorpora = (): Corpus<
  ReplyCase,
  'own' | 'edges' | 'sealed a' | 'sealed b' | 'sealed c' | 'public'
>[] => [
  ...corporaOf('replies/strangers.jsonl', 'replies/development.jsonl', readReplies),
  { name: 'edges', items: readReplies(join(OWN, 'replies/edges.jsonl')) },
  {
    name: 'sealed a',
    items: readReplies(join(OWN, 'replies/a.jsonl.gz')).filter((mail) => mail.class !== 'inline'),
  },
  { name: 'sealed b', items: readReplies(join(OWN, 'replies/b.jsonl.gz')) },
  { name: 'sealed c', items: readReplies(join(OWN, 'replies/c.jsonl.gz')) },
]

/**
 * Holds the messages of a test case in the order of their arrival. For each thread, `expected` lists the keys of its
 * messages. If the right threads are uncertain, `must` is false.
 */
export type ThreadScenario = {
  id: string
  why: string
  must: boolean
  expected: string[][]
  messages: {
    key: string
    messageId: string | null
    subject: string
    inReplyTo: string | null
    references: string | null
    inbox: string
    from: string
    sent: boolean
  }[]
}

export const threadCorpora = (): Corpus<ThreadScenario>[] =>
  corporaOf('threading/scenarios.json', 'threading/development.json', (path) =>
    JSON.parse(readFileSync(path, 'utf8')),
  )
