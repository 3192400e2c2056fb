/**
 * Reads mails, replies and conversations whose authors had not seen the code. Own sets are in test/fixtures. Public
 * sets may be beside the project, in `../shared/fixtures`. `npm test` reads the own sets, the whole suite all sets.
 */
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { isWhole } from '../database/extent.ts'

const OWN = join(import.meta.dir, '../../fixtures')
const PUBLIC = join(import.meta.dir, '../../../../shared/fixtures')

/** Is a set of test mails from one folder. The name of the test for the set contains `name`. */
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

/** Returns the file paths of a corpus. Each file holds one mail with the bytes that SMTP delivered. */
export const mailCorpora = (): Corpus<string>[] =>
  corporaOf('mails', 'eml', (folder) =>
    (readdirSync(folder, { recursive: true }) as string[])
      .map((name) => join(folder, name))
      .filter((path) => statSync(path).isFile() && !path.endsWith('.jsonl'))
      .toSorted(),
  )

/** Is a mail with its reply text. `alt` holds other accepted texts. The tier is `core` if all conventions agree. */
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
 * Returns the sets of replies. The set `edges` has joined and cut attributions, unlisted devices and odd characters,
 * each with hard negatives. The set `sealed a` is read without its inline answers: its author omitted the quoted
 * questions, and docs/contract.md keeps the questions.
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
 * Holds the messages of a test case in the order of arrival. `expected` lists the keys of the messages for each thread.
 * `must` is false if the right threads are in doubt.
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
